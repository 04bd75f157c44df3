# The image of gpubinder: the program, what it needs from requirements.lock, and the nats-server it is tested with.
# `make image` builds it; tests/house/test_image.py looks at it where no engine is at hand.
ARG PYTHON_IMAGE=docker.io/library/python:3.11.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# Built twice, it holds the same bytes.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore \
    PYTHONHASHSEED=0 \
    SOURCE_DATE_EPOCH=315532800
WORKDIR /source
# nkeys alone is published without a wheel; what makes one of it is pinned, and so is what makes ours.
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv --without-pip /opt/gpubinder \
 && pip install --no-cache-dir --constraint requirements-dev.lock hatchling editables setuptools==84.2.1 \
 && pip wheel --no-cache-dir --no-deps --no-build-isolation --no-binary nkeys --wheel-dir /wheels \
      "$(grep '^nkeys==' requirements.lock)" \
 && pip --python /opt/gpubinder/bin/python install --no-cache-dir --no-deps --no-compile --only-binary :all: \
      --find-links /wheels --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY binder binder
COPY ingest ingest
COPY projector projector
COPY webhooks webhooks
COPY deploy deploy
# Others' tests stay behind. Sources do not change any more: nothing compares their time with that of the bytecode.
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && pip --python /opt/gpubinder/bin/python install --no-cache-dir --no-deps --no-compile --no-index \
      /wheels/gpubinder-*.whl \
 && pip --python /opt/gpubinder/bin/python check \
 && find /opt/gpubinder/lib -name '*_test.py' -delete \
 && python -m compileall -q --invalidation-mode unchecked-hash /opt/gpubinder

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="gpubinder" \
      org.opencontainers.image.description="Decides which node gives which GPUs to which virtual machine" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/gpubinder/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
# Nothing that installs, and nothing that makes its caller root. The base has no bytecode of Python's own library: a third
# of a start would be spent on it each time.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore --disable-pip-version-check setuptools wheel pip \
 && rm -rf /usr/local/lib/python3*/ensurepip \
 && PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash \
      -x '/(test|tests|idlelib|lib2to3|tkinter|turtledemo|site-packages)/' /usr/local/lib/python3* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=build /opt/gpubinder /opt/gpubinder
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["gpubinder"]
