// SPDX-License-Identifier: Apache-2.0
import CountersignHTTP1
import Testing

@testable import CountersignParents

@Suite struct ConnectClientTests {
    private struct Field: SecretFieldValue {
        let text: String
        var byteCount: Int { text.utf8.count }

        func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
            Array(text.utf8).withUnsafeBytes(write)
        }
    }

    private func client(to name: String = "a.example") -> ConnectClient {
        ConnectClient(parent: proxy(.http, "squid.example", 3128), to: host(name), port: 443, via: "1.0 a, 1.1 b")
    }

    private func waiting() -> ConnectClient {
        var client = client()
        client.requestSent()
        return client
    }

    private func respond(_ client: inout ConnectClient, _ text: String) throws(ParentsError) -> ConnectClient.Action {
        try client.received(Array(text.utf8))
    }

    private func text(_ request: ConnectRequest) -> String { String(decoding: request.serialized(), as: UTF8.self) }

    // MARK: Requests

    @Test func theRequestNamesTheOriginTwice() {
        #expect(
            text(client().request())
                == "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nVia: 1.0 a, 1.1 b\r\n"
                + "Proxy-Connection: keep-alive\r\n\r\n")
        #expect(
            text(client(to: "::1").request(Field(text: "Basic dTpw\r\nX: y")))
                == "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nVia: 1.0 a, 1.1 b\r\n"
                + "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic dTpw  X: y\r\n\r\n")
    }

    // MARK: Responses

    @Test(arguments: ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 204 x\r\nContent-Length: 5\r\nVia: b\r\n\r\n"])
    func bytesAfterTheHeadBelongToTheTunnel(head: String) throws {
        var client = waiting()
        guard case .opened(let fields, let rest) = try respond(&client, head + "\u{16}\u{3}x") else {
            return #expect(Bool(false), "not opened")
        }
        #expect(String(decoding: fields.bytes, as: UTF8.self) == head)
        #expect(rest == [0x16, 3, 0x78])
        #expect(client.state == .opened)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 407 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\nx", "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n",
    ])
    func whatFollowsTheLastResponseIsAnError(response: String) throws {
        var client = waiting()
        _ = try respond(&client, response)
        let error = parentsError { () throws(ParentsError) in try respond(&client, "x") }
        #expect(error?.code == .malformedReply && client.state == .failed)
        #expect(parentsError { () throws(ParentsError) in try respond(&client, "x") }?.code == .malformedReply)
    }

    @Test func aChallengeIsAnsweredOnTheSameConnection() throws {
        var client = waiting()
        let challenge = """
            HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: NTLM\r\n\
            Proxy-Authenticate: Basic realm="corp"\r\nContent-Length: 4\r\n\r\nbody
            """
        var action = ConnectClient.Action.needMore
        for byte in challenge.utf8 {
            #expect(action == .needMore)
            action = try client.received([byte])
        }
        guard case .responded(let response) = action else { return #expect(Bool(false), "\(action)") }
        #expect(response.isChallenge && response.isReusable)
        #expect(response.challengeFields == ["NTLM", "Basic realm=\"corp\""])
        #expect(response.body == Array("body".utf8))
        client.requestSent()
        guard case .opened = try respond(&client, "HTTP/1.1 200 OK\r\n\r\n") else {
            return #expect(Bool(false), "not opened")
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 407 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", true),
        ("HTTP/1.1 403 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.0 407 x\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 407 x\r\nContent-Length: 0\r\nProxy-Connection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", false),
    ])
    func onlyACleanResponseLeavesTheConnectionReusable(text: String, isReusable: Bool) throws {
        var client = waiting()
        guard case .responded(let response) = try respond(&client, text) else {
            return #expect(Bool(false), "no response")
        }
        #expect(response.isReusable == isReusable)
        #expect(client.state == (isReusable ? .idle : .failed))
    }

    /// The rest of a handshake may go on behind it, and nothing else.
    @Test(arguments: [
        "HTTP/1.1 407 x\nProxy-Authenticate: NTLM\nContent-Length: 2\n\nno",
        "HTTP/1.1 407 x\r\nProxy-Authenticate:\r\n NTLM\r\nContent-Length: 2, 2\r\n\r\nno",
        "HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nno\n0\n\n",
        "HTTP/1.1 100 x\n\nHTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\nContent-Length: 2\r\n\r\nno",
    ])
    func aRepairedResponseIsReadAndItsConnectionIsNotReused(text: String) throws {
        var client = waiting()
        guard case .responded(let response) = try respond(&client, text) else {
            return #expect(Bool(false), "no response")
        }
        #expect(response.challengeFields == ["NTLM"] && response.body == Array("no".utf8))
        #expect(!response.isReusable && client.hasRepaired)
        #expect(client.state == .idle)
        client.requestSent()
        #expect(
            try respond(&client, "HTTP/1.1 200 OK\n\n\u{16}") == .opened(head: opened().fields, rest: [0x16]))
    }

    private func opened() throws -> ResponseHead {
        try #require(try ResponseHead.parse(Array("HTTP/1.1 200 OK\r\n\r\n".utf8).span.bytes)).head
    }

    @Test func theEndOfTheConnectionEndsAResponseWithoutLength() throws {
        var client = waiting()
        #expect(try respond(&client, "HTTP/1.1 502 Bad Gateway\r\n\r\nno route") == .needMore)
        guard case .responded(let response) = try client.connectionEnded() else {
            return #expect(Bool(false), "no response")
        }
        #expect(response.status == 502 && response.reason == "Bad Gateway")
        #expect(response.body == Array("no route".utf8))
        #expect(!response.isReusable && !response.isChallenge)
    }

    @Test func aLongBodyIsCutAndEndsTheConnection() throws {
        var client = waiting()
        let count = ConnectClient.maximumBodyBytes
        let whole = "HTTP/1.1 407 x\r\nContent-Length: \(count + 1)\r\n\r\n"
        #expect(try respond(&client, whole + String(repeating: "a", count: count)) == .needMore)
        guard case .responded(let response) = try respond(&client, "a") else {
            return #expect(Bool(false), "no response")
        }
        #expect(response.body.count == count)
        #expect(!response.isReusable)
    }

    @Test func informationalResponsesAreSkippedButNotForEver() throws {
        var client = waiting()
        let one = "HTTP/1.1 100 Continue\r\n\r\n"
        #expect(try respond(&client, String(repeating: one, count: 8)) == .needMore)
        #expect(parentsError { () throws(ParentsError) in try respond(&client, one) }?.code == .malformedReply)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\nX\n\n", "HTTP/1.1 101 x\r\n\r\n",
        "HTTP/1.1 407 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 407 x\r\nX: " + String(repeating: "a", count: 270_000),
    ])
    func nonsenseIsAnErrorThatNamesTheParent(text: String) {
        var client = waiting()
        let error = parentsError { () throws(ParentsError) in try respond(&client, text) }
        #expect(error?.code == .malformedReply)
        #expect(error?.detail.hasPrefix("the parent http://squid.example:3128: ") == true)
        #expect(client.state == .failed)
    }

    /// The head of the response says what the parent wants.
    @Test(arguments: [
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\nzz\r\n", false),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n", true), ("Content-Length: 4\r\n\r\nbod", true),
    ])
    func aBodyThatIsNotWholeSpoilsNoChallenge(rest: String, ends: Bool) throws {
        var client = waiting()
        var action = try respond(&client, "HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\n\(rest)")
        if ends {
            #expect(action == .needMore)
            action = try client.connectionEnded()
        }
        guard case .responded(let response) = action else { return #expect(Bool(false), "no response") }
        #expect(response.isChallenge && response.challengeFields == ["NTLM"] && response.body == Array("bod".utf8))
        #expect(!response.isReusable && client.state == .failed)
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 407 x\r\nContent-Length: 4\r\n"])
    func aConnectionThatEndsEarlyIsAnError(text: String) throws {
        var client = waiting()
        #expect(try respond(&client, text) == .needMore)
        #expect(parentsError { () throws(ParentsError) in try client.connectionEnded() }?.code == .malformedReply)
    }

    @Test func bytesBeforeTheRequestAreAnError() {
        var client = client()
        #expect(parentsError { () throws(ParentsError) in try respond(&client, "H") }?.code == .malformedReply)
    }
}
