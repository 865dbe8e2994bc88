"""Servers on loopback for the tests of stores: our own fault server, imitations of the clouds'
metadata and token endpoints, and real servers (moto, Azurite, nginx) in processes of their own.

Each listens on a free port of 127.0.0.1, is ready when its constructor returns, and has stop().
None outlives the process that started it, even one that is killed.
"""
