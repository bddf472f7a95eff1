# The table of cuts, see cuts.py. A cut is known by its number, bytes are counted in levels, and
# what takes more of them than there are levels takes infinitely long.
