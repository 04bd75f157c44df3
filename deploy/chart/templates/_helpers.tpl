{{- /* Words that the templates share. Names are fixed: the program knows settings, anchor and leases by them. */ -}}
{{- define "gpubinder.labels" -}}
app.kubernetes.io/name: gpubinder
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: gpubinder
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- /* What selects the pods of one part: a list of root and name. */ -}}
{{- define "gpubinder.selector" -}}
app.kubernetes.io/name: gpubinder
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "gpubinder.keepCrds" -}}
{{- if .Values.crds.keep -}}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
{{- end }}

{{- define "gpubinder.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.registry }}{{ $name = printf "%s/%s" .Values.image.registry $name }}{{ end -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $name .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* Roles that run, in the order of the pipeline. */ -}}
{{- define "gpubinder.roles" -}}
binder ingest projector {{- if .Values.enabled }} webhooks{{ end }}{{ if .Values.accounting.enabled }} accounting{{ end }}
{{- end }}

{{- define "gpubinder.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gpubinder.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Where pods may run: a list of root and the pods' name. */ -}}
{{- define "gpubinder.placement" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $root.Values.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: {{ $root.Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels: {{- include "gpubinder.selector" (list $root (index $ 1)) | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gpubinder.certificateSecret" -}}
{{- if eq .Values.webhooks.certificate.from "secret" -}}
{{ required "webhooks.certificate.secretName names the Secret with tls.crt and tls.key" .Values.webhooks.certificate.secretName }}
{{- else -}}
gpubinder-webhooks-tls
{{- end }}
{{- end }}

{{- /* Who is trusted to serve: where the webhooks make their certificates they say so themselves. */ -}}
{{- define "gpubinder.caBundle" -}}
{{- if eq .Values.webhooks.certificate.from "secret" -}}
caBundle: {{ required "webhooks.certificate.caBundle says who signed the certificate" .Values.webhooks.certificate.caBundle | b64enc }}
{{- end }}
{{- end }}

{{- define "gpubinder.injectCa" -}}
{{- if eq .Values.webhooks.certificate.from "certManager" -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/gpubinder-webhooks
{{- end }}
{{- end }}

{{- define "gpubinder.nats.usersSecret" -}}
{{ .Values.nats.server.usersSecret | default "gpubinder-nats-users" }}
{{- end }}

{{- /* How a part reaches NATS, as environment: a list of root and the user's name. */ -}}
{{- define "gpubinder.nats.env" -}}
{{- $root := index . 0 -}}{{- $user := index . 1 -}}{{- $nats := $root.Values.nats -}}
{{- if $nats.server.enabled }}
{{- $scheme := ternary "tls" "nats" (not (empty $nats.server.tls.secretName)) }}
- name: NATS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "gpubinder.nats.usersSecret" $root }}
      key: {{ $user }}
- name: GPUBINDER_NATS_URL
  value: {{ range $number := until (int $nats.server.servers) }}{{ if $number }},{{ end }}{{ $scheme }}://{{ $user }}:$(NATS_PASSWORD)@gpubinder-nats-{{ $number }}.gpubinder-nats.{{ $root.Release.Namespace }}.svc:4222{{ end }}
{{- else }}
- name: GPUBINDER_NATS_URL
  value: {{ required "nats.urls names the servers where nats.server.enabled is false" (join "," $nats.urls) | quote }}
{{- if $nats.credentialsSecret }}
- name: GPUBINDER_NATS_CREDS
  value: /etc/gpubinder/nats-credentials/user.creds
{{- end }}
{{- end }}
{{- if ternary $nats.server.tls.secretName $nats.tls.secretName $nats.server.enabled }}
- name: GPUBINDER_NATS_CA
  value: /etc/gpubinder/nats-tls/ca.crt
{{- if and (not $nats.server.enabled) $nats.tls.clientCertificate }}
- name: GPUBINDER_NATS_CERT
  value: /etc/gpubinder/nats-tls/tls.crt
- name: GPUBINDER_NATS_KEY
  value: /etc/gpubinder/nats-tls/tls.key
{{- end }}
{{- end }}
{{- end }}

{{- define "gpubinder.nats.mounts" -}}
{{- $nats := .Values.nats -}}
{{- if and (not $nats.server.enabled) $nats.credentialsSecret }}
- name: nats-credentials
  mountPath: /etc/gpubinder/nats-credentials
  readOnly: true
{{- end }}
{{- if ternary $nats.server.tls.secretName $nats.tls.secretName $nats.server.enabled }}
- name: nats-tls
  mountPath: /etc/gpubinder/nats-tls
  readOnly: true
{{- end }}
{{- end }}

{{- /* The volumes behind them: a list of root and the user's name. No part sees another's credentials. */ -}}
{{- define "gpubinder.nats.volumes" -}}
{{- $nats := (index . 0).Values.nats -}}
{{- if and (not $nats.server.enabled) $nats.credentialsSecret }}
- name: nats-credentials
  secret:
    secretName: {{ $nats.credentialsSecret }}
    defaultMode: 0440
    items:
      - key: {{ $nats.credentialsKey | default (printf "%s.creds" (index . 1)) }}
        path: user.creds
{{- end }}
{{- if $nats.server.enabled }}
{{- with $nats.server.tls.secretName }}
- name: nats-tls
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- else }}
{{- with $nats.tls.secretName }}
- name: nats-tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - {key: ca.crt, path: ca.crt}
      {{- if $nats.tls.clientCertificate }}
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gpubinder.env" -}}
- name: GPUBINDER_NAMESPACE
  value: {{ .Release.Namespace }}
- name: GPUBINDER_DATA
  value: /tmp/gpubinder
- name: HOME
  value: /tmp
{{- end }}

{{- /* Marks of what is there for a removal alone: a list of root and weight. */ -}}
{{- define "gpubinder.removalHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
