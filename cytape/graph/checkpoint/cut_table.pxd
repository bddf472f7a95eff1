# The table of the dynamic program over cuts, see cuts.py. Cuts are numbered and bytes are counted
# in levels; the time is infinite if the bytes exceed the last level.
