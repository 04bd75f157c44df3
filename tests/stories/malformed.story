# T6: a message that can't be read changes nothing and stops nobody; a version that nobody knows stops the program.
class l40s
node n1 l40s=1 cpu=8
message {
  rejects: Input data was truncated
message {"type":"tick","version":"secret-value"}
  rejects: Expected `int`, got `str` - at `$.version`
message {"type":"changes","kind":"secrets","session":1,"changes":[]}
  rejects: field kind names a kind that is not watched
message {"type":"changes","kind":"nodes","session":1,"changes":[{"type":"pod","name":"n1","uid":"u","rv":"9"}]}
  rejects: field changes holds an object that is not of the message's kind
start vm1 l40s=1
  opens vm1: l40s x1 by nvidia.com/L40S
  places vm1 on n1 for vm1-pod
unknown 99
  stops: EVENTS message 41: message kind 'tick' version 99 is not known to this program: run the version that wrote it, or skip it for good with `gpubinder void 41 --why TEXT`
void next
message {"type":"tick","version":99}
start vm2 l40s=1
  opens vm2: l40s x1 by nvidia.com/L40S
  vm2 waits: NoRoom
