# The image of gpubinder: the program, what it needs from requirements.lock, and the nats-server it is tested with.
# `make image` builds it; tests/house/test_image.py looks at it where no engine is at hand.
ARG PYTHON_IMAGE=python:3.11.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /source
# nkeys alone is published without a wheel.
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /opt/gpubinder \
 && /opt/gpubinder/bin/pip install --no-cache-dir --no-deps --only-binary :all: --no-binary nkeys \
      --requirement requirements.lock \
 && pip install --no-cache-dir --constraint requirements-dev.lock hatchling editables
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY binder binder
COPY ingest ingest
COPY projector projector
COPY webhooks webhooks
COPY deploy deploy
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/gpubinder/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
 && /opt/gpubinder/bin/pip check \
 && /opt/gpubinder/bin/pip uninstall --yes pip setuptools \
 && python -m compileall -q /opt/gpubinder

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="gpubinder" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/gpubinder /opt/gpubinder
ENV PATH=/opt/gpubinder/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["gpubinder"]
