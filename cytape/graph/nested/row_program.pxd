# Emitters of the ops in control/row_ops.py: rows as transfers, and checks of the written places.
