# SPDX-License-Identifier: Apache-2.0
"""An MCP server that requires authorization, and its own provider: both of PyPI's `mcp`, at one origin.

Usage: mcp_server.py LOG CERT KEY    Prints `listening PORT`. Everybody who opens its page is signed in. The only tool,
`add`, is at /mcp. Writes one JSON object for each request to LOG, which says whether it had a token.
"""

import asyncio
import json
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken, AuthorizationCode, OAuthAuthorizationServerProvider, RefreshToken, construct_redirect_uri)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import OAuthToken

LIFETIME = 3600


class Provider(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.tokens, self.refreshes = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(16)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource)
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(authorization_code)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refreshes[refresh_token.token]
        return self.issue(refresh_token)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)
        self.refreshes.pop(token.token, None)

    def issue(self, grant):
        own = {"client_id": grant.client_id, "scopes": grant.scopes, "resource": grant.resource}
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.tokens[access] = AccessToken(token=access, expires_at=int(time.time()) + LIFETIME, **own)
        self.refreshes[refresh] = RefreshToken(token=refresh, **own)
        return OAuthToken(
            access_token=access, token_type="Bearer", expires_in=LIFETIME, refresh_token=refresh,
            scope=" ".join(grant.scopes))


class Logged:
    """The application, with a line in the log for each request."""

    def __init__(self, app, path):
        self.app, self.file = app, open(path, "a", buffering=1)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def answer(message):
            if message["type"] == "http.response.start":
                names = [name for name, _ in scope["headers"]]
                self.file.write(json.dumps({
                    "method": scope["method"], "path": scope["path"], "status": message["status"],
                    "token": b"authorization" in names}) + "\n")
            await send(message)

        await self.app(scope, receive, answer)


def main(log, certificate, key):
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"https://mcp.test.localhost:{listener.getsockname()[1]}"
    server = MCPServer(
        "tests", auth_server_provider=Provider(), log_level="WARNING",
        auth=AuthSettings(
            issuer_url=origin, resource_server_url=origin + "/mcp", required_scopes=["tools"],
            validate_token_resource=True, revocation_options=RevocationOptions(enabled=True),
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["tools"], default_scopes=["tools"])))

    @server.tool()
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b

    app = server.streamable_http_app(
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
    config = uvicorn.Config(
        Logged(app, log), ssl_certfile=certificate, ssl_keyfile=key, log_level="warning", lifespan="on")
    print("listening", listener.getsockname()[1], flush=True)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


main(*sys.argv[1:4])
