{{- define "vel.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "vel.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "vel.selector" . }}
{{- end -}}

{{- define "vel.selector" -}}
app.kubernetes.io/name: vel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vel.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ required "Set image.tag or image.digest." .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "vel.secretName" -}}
{{ .Values.secret.existing | default (include "vel.name" .) }}
{{- end -}}

{{- define "vel.serviceAccountName" -}}
{{ .Values.serviceAccount.existing | default (include "vel.name" .) }}
{{- end -}}

{{- define "vel.claimName" -}}
{{ .Values.storage.existingClaim | default (printf "%s-data" (include "vel.name" .)) }}
{{- end -}}

{{/* The fields of each pod, besides its containers. */}}
{{- define "vel.podSpec" -}}
serviceAccountName: {{ include "vel.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
hostUsers: {{ .Values.sandbox.hostUsers }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: {{ .Values.sandbox.seccomp }}
    {{- if eq .Values.sandbox.seccomp "Localhost" }}
    localhostProfile: {{ .Values.sandbox.localhostProfile }}
    {{- end }}
  {{- with .Values.sandbox.appArmor }}
  appArmorProfile:
    type: {{ . }}
  {{- end }}
{{- end -}}

{{/* The fields of each container. */}}
{{- define "vel.container" -}}
image: {{ include "vel.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  procMount: {{ .Values.sandbox.procMount }}
envFrom:
  - secretRef:
      name: {{ include "vel.secretName" . }}
volumeMounts:
  - name: data
    mountPath: /var/lib/vel
  - name: tmp
    mountPath: /tmp
{{- end -}}

{{/* The variables of each container. `VEL_HOST` is different. */}}
{{- define "vel.environment" -}}
- name: VEL_ALLOWED_HOSTS
  value: {{ join "," .Values.hosts | quote }}
- name: VEL_PUBLIC_URL
  value: {{ .Values.publicUrl | quote }}
- name: VEL_HTTPS
  value: "1"
- name: VEL_TRUSTED_PROXIES
  value: {{ .Values.trustedProxies | quote }}
- name: VEL_LOG_FORMAT
  value: json
{{- if eq .Values.storage.mode "shared" }}
- name: VEL_SHARED_WORKSPACES
  value: "1"
{{- else }}
- name: VEL_STORAGE_URL
  value: {{ required "Set storage.url to s3://…, or storage.mode to shared." .Values.storage.url | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{- define "vel.tmp" -}}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.sandbox.tmpSize }}
{{- end -}}

{{/* Restart pods if the Secret of the chart changes. */}}
{{- define "vel.annotations" -}}
checksum/secret: {{ toJson .Values.secret | sha256sum }}
{{- end -}}
