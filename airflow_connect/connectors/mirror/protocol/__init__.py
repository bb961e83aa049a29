"""What MirrorMaker 2's own topics hold: offset syncs, checkpoints and heartbeats, byte for byte."""
