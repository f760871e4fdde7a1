"""Private servers, the relay and a checker, for tests, demo and benchmarks.

Everything here starts processes in temporary directories on free ports of 127.0.0.1, keeps
nothing after it was stopped, and never touches an installed PostgreSQL or Kafka.
"""
