"""What becomes of the call of an op, kind by kind: computing, recording, differentiating."""
