"""What every request passes before its verb: who, as whom, may they, not too many, audit."""
