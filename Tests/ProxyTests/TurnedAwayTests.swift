// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignProxy

/// An origin that closes a new connection without a byte of a response, as a server does that restarts.
@Suite struct TurnedAwayTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    enum End: CaseIterable {
        case close, reset

        func callAsFunction(_ socket: BulkSocket) {
            switch self {
            case .close: Glibc.close(socket.descriptor)
            case .reset: socket.reset()
            }
        }
    }

    /// RFC 9110 §9.2.2.
    @Test(arguments: ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"], End.allCases)
    func anIdempotentRequestWithoutContentIsSentAgain(method: String, end: End) async throws {
        let stage = try await TunnelStage()
        let way = try await stage.exchange(method)
        end(way.origin)
        let next = await stage.nextOrigin()
        await onThread {
            #expect(next.head().hasPrefix("\(method) / HTTP/1.1\r\n"))
            #expect(next.send(text: Self.ok))
            #expect(way.client.head().hasPrefix("HTTP/1.1 200 "))
        }
        TunnelStage.Tunnel(client: way.client, origin: next).close()
        try await stage.stop()
    }

    @Test(arguments: End.allCases) func itIsSentTwiceAtMost(end: End) async throws {
        let stage = try await TunnelStage()
        let way = try await stage.exchange("GET")
        end(way.origin)
        let next = await stage.nextOrigin()
        await onThread {
            #expect(next.head().hasPrefix("GET / HTTP/1.1\r\n"))
            end(next)
            let head = way.client.head()
            #expect(head.hasPrefix("HTTP/1.1 502 ") && head.contains("error=connection_terminated"), "\(head)")
        }
        close(way.client.descriptor)
        try await stage.stop()
    }

    /// They may have been processed, or belong to the connection, or are lost.
    @Test(arguments: [
        ("POST", "Content-Length: 0\r\n", "", ""), ("PATCH", "", "", ""), ("PUT", "Content-Length: 1\r\n", "x", ""),
        ("PUT", "Content-Length: 2\r\n", "x", ""), ("GET", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", ""),
        ("GET", "Authorization: NTLM TlRMTVNTUAABAAAA\r\n", "", ""), ("GET", "", "", "H"), ("GET", "", "", "HTTP/1.1 "),
    ])
    func otherRequestsAreNotSentAgain(
        _ request: (method: String, fields: String, content: String, response: String)
    ) async throws {
        let stage = try await TunnelStage()
        let way = try await stage.exchange(request.method, fields: request.fields)
        await onThread {
            #expect(way.client.send(text: request.content))
            #expect(way.origin.text(request.content.utf8.count) == request.content)
            #expect(way.origin.send(text: request.response))
            close(way.origin.descriptor)
            // It would wait for the other connection.
            #expect(way.client.head().hasPrefix("HTTP/1.1 502 "))
        }
        close(way.client.descriptor)
        try await stage.stop()
    }

    /// It is not known whether the password has been tried.
    @Test func anAnswerIsNotSentAgain() async throws {
        let stage = try await TunnelStage(options: "answer=basic plaintext=yes", password: "pw")
        let way = try await stage.exchange("GET")
        await onThread {
            // The answer needs another connection.
            #expect(
                way.origin.send(
                    text: "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nConnection: close\r\n"
                        + "Content-Length: 0\r\n\r\n"))
            close(way.origin.descriptor)
        }
        let next = await stage.nextOrigin()
        await onThread {
            let head = next.head()
            #expect(head.contains("\r\nAuthorization: Basic "), "\(head)")
            close(next.descriptor)
            #expect(way.client.head().hasPrefix("HTTP/1.1 502 "))
        }
        close(way.client.descriptor)
        try await stage.stop()
    }
}
