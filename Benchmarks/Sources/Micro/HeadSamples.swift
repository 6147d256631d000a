// SPDX-License-Identifier: Apache-2.0

/// Recorded heads; only host names are changed.
enum HeadSamples {
    /// curl 7.88.1 to its proxy.
    static let curl = head(
        "GET http://intranet.acme.example/api/v1/items/17 HTTP/1.1", "Host: intranet.acme.example",
        "User-Agent: curl/7.88.1", "Accept: */*", "Proxy-Connection: Keep-Alive")

    /// curl 7.88.1 inside CONNECT.
    static let curlInTunnel = head(
        "GET /api/v1/items/17 HTTP/1.1", "Host: intranet.acme.example", "User-Agent: curl/7.88.1", "Accept: */*")

    /// git 2.39.5 inside CONNECT.
    static let git = head(
        "GET /acme/widgets.git/info/refs?service=git-upload-pack HTTP/1.1", "Host: git.acme.example",
        "User-Agent: git/2.39.5", "Accept: */*", "Accept-Encoding: deflate, gzip, br, zstd",
        "Accept-Language: C, *;q=0.9", "Pragma: no-cache", "Git-Protocol: version=2")

    /// Chromium 156 to its proxy.
    static let chromium = head(
        "GET http://intranet.acme.example/reports/2024/q3?view=summary HTTP/1.1", "Host: intranet.acme.example",
        "Proxy-Connection: keep-alive", "Upgrade-Insecure-Requests: 1",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
            + "HeadlessChrome/156.0.0.0 Safari/537.36",
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,image/apng,"
            + "*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
        "Accept-Encoding: gzip, deflate", "Accept-Language: en-US,en;q=0.9")

    /// nginx 1.22 serving a file.
    static let nginx = head(
        "HTTP/1.1 200 OK", "Server: nginx/1.22.1", "Date: Thu, 21 Nov 2024 10:35:12 GMT", "Content-Type: text/html",
        "Content-Length: 1024", "Last-Modified: Thu, 21 Nov 2024 05:16:40 GMT", "Connection: keep-alive",
        "ETag: \"673ec2a8-400\"", "Accept-Ranges: bytes")

    /// An application behind IIS 10, with a chunked body and a session cookie.
    static let application = head(
        "HTTP/1.1 200 OK", "Cache-Control: private, no-cache, no-store", "Transfer-Encoding: chunked",
        "Content-Type: application/json; charset=utf-8", "Vary: Accept-Encoding", "Server: Microsoft-IIS/10.0",
        "Set-Cookie: ASP.NET_SessionId=2wq0o4wzlv3grp1rc5mpx3qh; path=/; secure; HttpOnly; SameSite=Lax",
        "X-AspNet-Version: 4.0.30319", "X-Powered-By: ASP.NET", "Persistent-Auth: true",
        "Date: Thu, 21 Nov 2024 10:35:12 GMT")

    /// The challenge of IIS 10 with Windows and Basic authentication enabled.
    static let challenge = head(
        "HTTP/1.1 401 Unauthorized", "Content-Type: text/html", "Server: Microsoft-IIS/10.0",
        "WWW-Authenticate: Negotiate", "WWW-Authenticate: NTLM",
        "WWW-Authenticate: Basic realm=\"intranet.acme.example\"", "X-Powered-By: ASP.NET",
        "Date: Thu, 21 Nov 2024 10:35:12 GMT", "Content-Length: 1293")

    /// The challenge of a server that follows RFC 6750.
    static let bearerChallenge = head(
        "HTTP/1.1 401 Unauthorized", "Server: nginx/1.22.1", "Date: Wed, 01 Jul 2026 09:30:00 GMT",
        "Content-Length: 0", "Connection: keep-alive", "WWW-Authenticate: Bearer realm=\"api\", scope=\"read\"")

    /// The challenge of a server that follows RFC 7616.
    static let digestChallenge = head(
        "HTTP/1.1 401 Unauthorized", "Content-Type: text/html",
        "WWW-Authenticate: Digest realm=\"intranet.acme.example\", qop=\"auth\", algorithm=SHA-256, "
            + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
            + "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
        "Date: Thu, 21 Nov 2024 10:35:12 GMT", "Content-Length: 1293")

    private static func head(_ lines: String...) -> [UInt8] {
        Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }
}
