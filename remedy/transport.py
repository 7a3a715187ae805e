"""Running scripts on hosts: the only module that imports pyinfra's connection machinery."""
