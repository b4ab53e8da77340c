"""Handler chain before the verb: authentication, impersonation, flow control, authorization, audit."""
