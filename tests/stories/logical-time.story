# T9: logical time grows by the stamps' step, never back, at most 30 s a step; a longer silence is a gap.
class l40s
show time
  logical time 0 s, silence 0 s
tick 7
show time
  logical time 7 s, silence 0 s
tick -100
show time
  logical time 7 s, silence 0 s
tick 4
show time
  logical time 11 s, silence 0 s
tick 3600
show time
  logical time 41 s, silence 3570 s
