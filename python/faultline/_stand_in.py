"""Stands in for the program when a function of a running process is planned: passes the request on, lets the process that runs the function be watched as
the program would be, and ends as the function did."""

import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
lines = connection.makefile()
plan = os.environ["FAULTLINE_PLAN"]
connection.sendall(plan.encode() + b"\n")
process = lines.readline().strip()
try:
    if process:
        os.chdir(
            os.path.join(os.path.dirname(plan), "watch", process)
        )  # the watch over this process takes it as "watch that one too"
    connection.sendall(b"watched\n")
except OSError as problem:
    connection.sendall(f"{problem.strerror}\n".encode())
answer = lines.readline().strip()
sys.exit(int(answer) if answer.lstrip("-").isdigit() else 3)
