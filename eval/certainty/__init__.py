"""How far a system can be trusted: calibration, risk over coverage, and operating points that are certified."""
