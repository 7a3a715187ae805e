"""What a message of a gateway carries: the bytes that a host printed, and nothing else.

ClusterShell pickles what hosts print, and its controller unpickles it (``Communication.Message.data_decode``):
root of a gateway would run any code there. Here a payload is one pickled ``bytes`` object or an error. The same
as a patch for ClusterShell itself is docs/upstream/clustershell-plain-output.patch.
"""

from __future__ import annotations

import base64
import binascii

from remedy.plain_pickle import PlainPickleError, loads

OPCODES = 8
"""Of a pickled bytes object: its protocol, a frame, the bytes, a place in the memo, the end."""


class PayloadError(ValueError):
    """A gateway's message carries something else than the bytes that a host printed."""


def output_of(payload: bytes | None) -> bytes:
    """Return the bytes that a message about a host's output carries.

    Args:
        payload: the content of the message, in base64.

    Raises:
        PayloadError: it is anything else.
    """
    try:
        value = loads(base64.b64decode(payload or b""), OPCODES)
    except (PlainPickleError, binascii.Error, ValueError) as error:
        raise PayloadError(f"a message with other content than output: {error}") from error
    if type(value) is not bytes:
        raise PayloadError(
            f"a message with other content than output: {type(value).__name__}, no bytes"
        )
    return value
