"""Work of several requests: functions over a client, their only I/O."""
