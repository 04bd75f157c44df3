# D5: an operator pauses and resumes placing by commands, beside the setting; each is answered and logged.
class l40s
node n1 l40s=4 cpu=8
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
command resume
  refuses resume: placing is not paused by a command
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
command pause
  refuses pause: placing is paused already, by ops
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: Paused
end vm1-pod
  releases vm1 from n1: LauncherEnded
settings paused=true
command resume
  does resume: placing goes on; the settings ConfigMap still pauses it
settings paused=false
  places vm2 on n1 for vm2-pod
# Paused by a command, another leader that began from a snapshot places nothing either.
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
restart
epoch
progress
start vm3 l40s=1
  opens vm3: l40s x1 by nvidia.com/L40S
  vm3 waits: Paused
command resume
  does resume: placing goes on
  places vm3 on n1 for vm3-pod
# Nothing is placed on a picture that may be old, also after a command.
epoch
command pause
  does pause: placing is paused: VMs are admitted and wait behind their gate, what runs goes on
start vm4 l40s=1
command resume
  does resume: placing goes on
progress
  opens vm4: l40s x1 by nvidia.com/L40S
  places vm4 on n1 for vm4-pod
