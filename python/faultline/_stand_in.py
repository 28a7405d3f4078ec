"""Stands in for the program when a function of a running process is planned: passes the request on and ends as the function did."""
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(os.environ["FAULTLINE_PLAN"].encode() + b"\n")
answer = connection.makefile().readline().strip()
sys.exit(int(answer) if answer.lstrip("-").isdigit() else 3)
