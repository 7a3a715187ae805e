"""The states of cards, ports and ranks as tools print them: nvidia-smi, ibstat, RAS, flight recorders."""
