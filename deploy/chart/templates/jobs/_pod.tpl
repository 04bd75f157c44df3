{{- /* The pod of a Job: a list of root, service account, user of NATS ('' for none), restart policy, arguments. */ -}}
{{- define "gpubinder.jobPod" -}}
{{- $root := index . 0 -}}{{- $account := index . 1 -}}{{- $user := index . 2 -}}
metadata:
  labels: {{- include "gpubinder.selector" (list $root $account) | nindent 4 }}
spec:
  serviceAccountName: gpubinder-{{ $account }}
  restartPolicy: {{ index . 3 }}
  securityContext: {{- include "gpubinder.podSecurity" $root | nindent 4 }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ $account }}
      image: {{ include "gpubinder.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      terminationMessagePolicy: FallbackToLogsOnError
      args: {{- index . 4 | toYaml | nindent 8 }}
      env:
        {{- include "gpubinder.env" $root | nindent 8 }}
        {{- if $user }}
        {{- include "gpubinder.nats.env" (list $root $user) | nindent 8 }}
        {{- end }}
      resources: {{- toYaml $root.Values.resources.default | nindent 8 }}
      securityContext: {{- include "gpubinder.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if $user }}
        {{- include "gpubinder.nats.mounts" $root | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if $user }}
    {{- include "gpubinder.nats.volumes" (list $root $user) | nindent 4 }}
    {{- end }}
{{- end }}
