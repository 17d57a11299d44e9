"""What a front server sends on a FastCGI connection: records in, requests and bodies of them out.

Knows records, streams and the three roles; not how a response looks. Section numbers are those of the FastCGI
Specification 1.0.

- Body bytes are never looked at as records: what is left of a body's stream is dropped record by record.
- A second request id at a time is refused (CANT_MPX_CONN); what belongs to no request is counted, and bounded.
"""

from __future__ import annotations

from gateways.core.errors import BodyIncomplete, RemoteProtocolError
from gateways.core.request import VariableRequest
from gateways.core.variables import MAX_BLOCK, parse_content_length
from gateways.wire.fastcgi_records import (
    ABORT_REQUEST,
    AUTHORIZER,
    BEGIN_REQUEST,
    CANT_MPX_CONN,
    DATA,
    FILTER,
    GET_VALUES,
    HEADER,
    HEADER_SIZE,
    KEEP_CONN,
    PARAMS,
    RESPONDER,
    ROLE_NAMES,
    STDIN,
    UNKNOWN_ROLE,
    UNKNOWN_TYPE,
    VERSION,
    format_end_request,
    format_record,
    format_unknown_type,
    format_values_result,
    parse_begin,
    parse_variables,
)
from gateways.wire.pieces import Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.limits import WireLimits
    from gateways.core.request import Endpoint

DEFAULT_VALUES = {"FCGI_MAX_CONNS": "1", "FCGI_MAX_REQS": "1", "FCGI_MPXS_CONNS": "0"}
"""What GET_VALUES is told by a serving process that nobody described better (section 4.1)."""

_PLAIN_BEGIN = HEADER.pack(VERSION, BEGIN_REQUEST, 1, 8, 0)[:7]
_PLAIN_ROLE = RESPONDER.to_bytes(2)
_PLAIN_PARAMS = HEADER.pack(VERSION, PARAMS, 1, 0, 0)[:4]
_PLAIN_END = format_record(PARAMS, 1, b"") + format_record(STDIN, 1, b"")
_PLAIN_SIZE = 3 * HEADER_SIZE + len(_PLAIN_END)

# What the active request has come to.
NOTHING, HEAD, BODY = range(3)


class FastCGIInput:
    """See ``core.interfaces.Wire``.

    ``values``: the answers to GET_VALUES. ``max_params``: bytes of one request's PARAMS stream, and of records that
    belong to no request served; beyond it the connection is refused.
    """

    __slots__ = (
        "_aborted",
        "_at",
        "_body",
        "_buffer",
        "_closed",
        "_complete",
        "_data_left",
        "_ended",
        "_endpoint",
        "_eof",
        "_errors_sent",
        "_foreign",
        "_fresh",
        "_keep",
        "_left",
        "_limits",
        "_max_params",
        "_output",
        "_params",
        "_params_size",
        "_peer",
        "_received",
        "_request",
        "_responded",
        "_role",
        "_short",
        "_speaks_http",
        "_state",
        "_stream",
        "_taken",
        "_values",
        "request_id",
    )  # fmt: skip

    def __init__(
        self,
        endpoint: Endpoint,
        peer: object,
        limits: WireLimits,
        values: dict[str, str] = DEFAULT_VALUES,
        max_params: int = MAX_BLOCK,
    ) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._limits = limits
        self._values = values
        self._max_params = max_params
        self._buffer = b""
        self._at = 0
        self._eof = False
        self._closed = False
        self._speaks_http = False
        # Not one record has come: what is none may be another protocol.
        self._fresh = True
        self._output = b""
        self._foreign = 0
        self._ended = True
        self._body = Pieces()
        self._forget()

    def _forget(self) -> None:
        """Become idle. Nothing of one request may show in the next (CVE-2011-2766)."""
        self._state = NOTHING
        self.request_id = 0
        self._role = RESPONDER
        self._keep = False
        self._params: list[bytes] | None = None
        self._params_size = 0
        self._request: VariableRequest | None = None
        self._taken = False
        if self._body.held:
            self._body = Pieces()
        self._received = 0
        self._stream = STDIN
        self._left: int | None = None
        self._data_left: int | None = None
        self._complete = False
        self._short = False
        self._aborted = False

    # Records in.

    def receive(self, data: bytes) -> None:
        """Take bytes from the front server; ``b""`` at its end of input."""
        if not data:
            self._eof = True
        elif self._closed:
            return
        elif self._at == len(self._buffer):
            self._buffer = data
            self._at = 0
        else:
            self._buffer = self._buffer[self._at :] + data
            self._at = 0

    def _parse(self, to_end: bool = False) -> None:
        """Consume records until the active request's body is complete, or with ``to_end`` until its stream has ended.

        What follows is looked at after this request, so that it comes to the same however the input was cut.
        """
        if self._closed:
            return
        buffer = self._buffer
        at = self._at
        size = len(buffer)
        unpack = HEADER.unpack_from
        try:
            while size - at >= HEADER_SIZE and not (self._complete and (self._ended or not to_end)):
                version, kind, request_id, length, padding = unpack(buffer, at)
                end = at + HEADER_SIZE + length
                if version != VERSION:
                    break
                if end + padding > size:
                    break
                content = buffer[at + HEADER_SIZE : end]
                at = end + padding
                if request_id and request_id == self.request_id:
                    self._take_record(kind, content)
                else:
                    self._take_foreign(kind, request_id, content)
            if at < size and buffer[at] != VERSION and not self._complete:
                raise self._describe_version(buffer[at])
        except RemoteProtocolError:
            self._close()
            raise
        self._at = at

    def _describe_version(self, version: int) -> RemoteProtocolError:
        if self._fresh and 65 <= version <= 90:
            self._speaks_http = True
            return RemoteProtocolError("this port speaks FastCGI, and what came looks like HTTP", 400, "FastCGI 3.3")
        return RemoteProtocolError(f"FastCGI version {version}", 400, "FastCGI 3.3")

    def _close(self) -> None:
        """After a broken rule no further byte is parsed."""
        self._closed = self._eof = True
        self._buffer = b""
        self._at = 0

    def _take_record(self, kind: int, content: bytes) -> None:
        """Take a record of the active request."""
        if kind == PARAMS and self._state == HEAD:
            if content:
                self._take_params(content)
            else:
                self._open_body()
        elif kind == self._stream and self._state == BODY:
            if content:
                self._take_content(content)
            else:
                self._end_stream()
        elif kind == ABORT_REQUEST:
            self._abort()
        elif kind > UNKNOWN_TYPE:
            self._drop(content)
        else:
            raise RemoteProtocolError(f"a record of type {kind} out of its order", 400, "FastCGI 3.3")

    def _take_foreign(self, kind: int, request_id: int, content: bytes) -> None:
        """Take a record of the connection itself (id 0), of a new request, or of one that is not served."""
        self._fresh = False
        if kind == BEGIN_REQUEST and request_id and not self.request_id:
            self._begin(request_id, content)
            return
        self._drop(content)
        if request_id:
            if kind == BEGIN_REQUEST:
                self._output += format_end_request(request_id, 0, CANT_MPX_CONN)
        elif kind == GET_VALUES:
            self._output += format_values_result(content, self._values)
        elif kind < GET_VALUES:
            raise RemoteProtocolError(f"a record of type {kind} with request id 0", 400, "FastCGI 3.3")
        else:
            self._output += format_unknown_type(kind)

    def _drop(self, content: bytes) -> None:
        """Count what serves no request: a peer that sends nothing else would keep us busy for ever."""
        self._foreign += HEADER_SIZE + len(content)
        if self._foreign > self._max_params:
            raise RemoteProtocolError("too many records that belong to no request", 400, "FastCGI 3.3")

    def _begin(self, request_id: int, content: bytes) -> None:
        role, keep = parse_begin(content)
        if role not in ROLE_NAMES:
            self._output += format_end_request(request_id, 0, UNKNOWN_ROLE)
            if not keep:
                raise RemoteProtocolError(f"FastCGI role {role} is not known", 400, "FastCGI 6.1")
            return
        self.request_id = request_id
        self._role = role
        self._keep = keep
        self._state = HEAD
        self._foreign = 0
        self._ended = False

    def _take_params(self, content: bytes) -> None:
        self._params_size += len(content)
        if self._params_size > self._max_params:
            raise RemoteProtocolError(f"more than {self._max_params} bytes of variables", 431, "FastCGI 5.2")
        if self._params is None:
            self._params = []
        self._params.append(content)

    def _open_body(self) -> None:
        """The PARAMS stream is complete: make the request, and learn how long its body is to be."""
        params = self._params or ()
        variables = parse_variables(params[0] if len(params) == 1 else b"".join(params))
        text = variables.get("CONTENT_LENGTH", "")
        length = parse_content_length(text, self._limits.body)
        # An Authorizer has no STDIN (section 6.3); otherwise only the stream's end tells what was not announced.
        self._left = total = length if text or self._role == AUTHORIZER else None
        if self._role == FILTER:
            text = variables.get("FCGI_DATA_LENGTH", "")
            self._data_left = parse_content_length(text, self._limits.body - length) if text else None
            total = None if total is None or self._data_left is None else total + self._data_left
        variables["FCGI_ROLE"] = ROLE_NAMES[self._role]
        self._params = None
        self._request = VariableRequest(self._endpoint, self._peer, variables, total, True)
        self._state = BODY
        self._complete = total == 0

    def _take_content(self, content: bytes) -> None:
        """Take a piece of body; what goes beyond the announced length is dropped."""
        left = self._left
        if left is not None:
            if len(content) > left:
                content = content[:left]
            self._left = left - len(content)
            self._complete = self._left == 0 and (self._role != FILTER or self._stream == DATA)
        elif self._received + len(content) > self._limits.body:
            raise RemoteProtocolError(f"the body is longer than {self._limits.body} bytes", 413, "RFC 9110 15.5.14")
        if content:
            self._received += len(content)
            self._body.append(content)

    def _end_stream(self) -> None:
        if self._left:
            self._short = True
        if self._role == FILTER and self._stream == STDIN:
            self._stream = DATA
            self._left = self._data_left
            self._complete = self._left == 0
        else:
            self._ended = self._complete = True

    def _abort(self) -> None:
        """The front server wants no response any more (section 5.4)."""
        if self._taken:
            self._ended = self._complete = self._short = self._aborted = True
            return
        keep = self._keep
        self._output += format_end_request(self.request_id, 0, 0)
        self._forget()
        self._ended = True
        if not keep:
            raise RemoteProtocolError("the front server aborted its request", 400, "FastCGI 5.4")

    # Requests and bodies out.

    def take_request(self) -> VariableRequest | None:
        """Return the next request once its PARAMS stream is complete (section 5.2).

        ``content_length`` is ``None`` when CONTENT_LENGTH was not sent and the body has not ended yet.
        """
        if self._taken or self._closed:
            return None
        if self._state == NOTHING and not self._at:
            self._take_plain()
        if self._state != BODY:
            self._parse()
        request = self._request
        if request is not None:
            self._taken = True
            if self._complete:
                self._settle_length(request)
            return request
        if self._eof and self.has_partial_request:
            self._close()
            raise RemoteProtocolError("the connection ended within a request's head", 400, "FastCGI 5.2")
        return None

    def _take_plain(self) -> None:
        """Take what nearly every request is: all of it in the buffer, one PARAMS record, id 1, no body.

        It comes to what ``_parse`` makes of the same records, without a look at each of them (`bench wires`, fastcgi:
        6 of 45 us a request). Anything else is left to ``_parse``.
        """
        buffer = self._buffer
        size = len(buffer)
        if size < _PLAIN_SIZE or buffer[16:20] != _PLAIN_PARAMS or buffer[:7] != _PLAIN_BEGIN:
            return
        length = buffer[20] << 8 | buffer[21]
        if length + buffer[22] + _PLAIN_SIZE != size or not buffer.endswith(_PLAIN_END):
            return
        if not 0 < length <= self._max_params or buffer[8:10] != _PLAIN_ROLE:
            return
        self._fresh = False
        self._foreign = 0
        self.request_id = 1
        self._keep = bool(buffer[10] & KEEP_CONN)
        self._params = [buffer[24 : 24 + length]]
        self._at = size
        try:
            self._open_body()
        except RemoteProtocolError:
            self._close()
            raise
        self._end_stream()

    def _settle_length(self, request: VariableRequest) -> None:
        """Give a body that came whole before the application was called its length, announced or not."""
        if request.content_length is None and not self._short:
            request.content_length = self._received
            if self._received and self._role == RESPONDER:
                request.variables["CONTENT_LENGTH"] = str(self._received)

    def body_ready(self) -> bool:
        """True when the body is complete, or much of it is held, or the request was aborted."""
        if not self._complete:
            self._parse()
        if self._complete and self._request is not None:
            self._settle_length(self._request)
        return self._complete or self._body.held >= self._limits.buffered_body

    def take_body(self, size: int) -> bytes | None:
        """Return at most ``size`` bytes of the body."""
        body = self._body
        if not body.held and not self._complete:
            self._parse()
        if body.held:
            return body.take(size)
        if self._short and self._complete:
            raise BodyIncomplete("the body ended before its announced length")
        if self._complete:
            return b""
        if self._eof:
            raise BodyIncomplete("the connection ended within the request's body")
        return None

    def body_complete(self) -> bool:
        """True when the whole body has come; after ``finish``, when its stream's last record has come, too."""
        return self._complete or self._ended

    def take_output(self) -> bytes:
        """Return answers to management records and refusals of multiplexed requests."""
        output = self._output
        self._output = b""
        return output

    @property
    def has_partial_request(self) -> bool:
        """True between a request's first byte and the end of its PARAMS stream."""
        return self._state == HEAD or (self._state == NOTHING and self._at < len(self._buffer))

    @property
    def buffered(self) -> int:
        """Bytes of records not yet parsed, and of body not yet taken."""
        return len(self._buffer) - self._at + self._body.held
