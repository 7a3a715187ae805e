"""The engines, one file each: what travels to the hosts; see ``remedy.verify.engine``."""
