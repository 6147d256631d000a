// SPDX-License-Identifier: Apache-2.0
import CountersignCryptography
import Testing

@testable import CountersignParents

@Suite struct SOCKS5ClientTests {
    private let tor = proxy(.socks5h, "tor.example", 9050)
    private let credential = SOCKS5Client.Credential(user: Secret(utf8: "u"), password: Secret(utf8: "pw"))

    private func client(
        to name: String = "a.example", _ credential: SOCKS5Client.Credential? = nil, kind: ParentProxy.Kind = .socks5h
    ) -> SOCKS5Client {
        SOCKS5Client(parent: proxy(kind, "tor.example", 9050), to: host(name), port: 443, credential: credential)
    }

    /// The actions that are not `needMore` when the bytes come one by one.
    private func feed(_ client: inout SOCKS5Client, _ bytes: [UInt8]) throws(ParentsError) -> [SOCKS5Client.Action] {
        var actions: [SOCKS5Client.Action] = []
        for byte in bytes {
            let action = try client.received([byte])
            if action != .needMore { actions.append(action) }
        }
        return actions
    }

    // MARK: Dialogues

    @Test func aNameIsResolvedByTheParent() throws {
        var client = client()
        #expect(client.connected() == .send([5, 1, 0]))
        #expect(try feed(&client, [5, 0]) == [.send([5, 1, 0, 3, 9] + Array("a.example".utf8) + [1, 0xBB])])
        #expect(try feed(&client, [5, 0, 0, 1, 127, 0, 0, 1, 0, 80]) == [.established([])])
        #expect(client.state == .established)
    }

    @Test(
        arguments: [
            ("192.0.2.7", [1, 192, 0, 2, 7]),
            ("2001:db8::1", [4, 0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ] as [(String, [UInt8])])
    func addressesAreSentAsSuch(address: String, encoded: [UInt8]) throws {
        var client = client(to: address, kind: .socks5)
        _ = client.connected()
        #expect(try feed(&client, [5, 0]) == [.send([5, 1, 0] + encoded + [1, 0xBB])])
    }

    @Test func theCredentialIsSentOnlyIfTheParentWantsIt() throws {
        var client = client(credential)
        #expect(client.connected() == .send([5, 2, 0, 2]))
        #expect(try feed(&client, [5, 2]) == [.sendSecret(Secret([1, 1, 0x75, 2, 0x70, 0x77]))])
        #expect(try feed(&client, [1, 0]).count == 1)
        #expect(client.state == .waitingForReply)

        var open = self.client(credential)
        _ = open.connected()
        let actions = try feed(&open, [5, 0])
        guard case .send(let request)? = actions.first else { return #expect(Bool(false), "\(actions)") }
        #expect(request.prefix(3) == [5, 1, 0])
    }

    @Test func aCredentialThatDoesNotFitIsRefused() {
        let long = Secret([UInt8](repeating: 0x61, count: 256))
        #expect(SOCKS5Client.Credential(user: long, password: Secret(utf8: "p")) == nil)
        #expect(SOCKS5Client.Credential(user: Secret(utf8: "u"), password: long) == nil)
        #expect(SOCKS5Client.Credential(user: Secret(utf8: ""), password: Secret(utf8: "p")) == nil)
        #expect(SOCKS5Client.Credential(user: Secret(long.withBytes { $0.dropLast() }), password: long) == nil)
    }

    /// The address of a reply may have any of three types (RFC 1928 §6).
    @Test(
        arguments: [
            [1, 0, 0, 0, 0, 0, 0], [4] + [UInt8](repeating: 0, count: 18), [3, 0, 0, 0], [3, 2, 0x61, 0x62, 0, 0],
        ] as [[UInt8]])
    func bytesAfterTheReplyBelongToTheTunnel(address: [UInt8]) throws {
        var client = client()
        _ = client.connected()
        _ = try client.received([5, 0])
        #expect(try client.received([5, 0, 0] + address + [0x16, 3]) == .established([0x16, 3]))
    }

    // MARK: Faults of the parent

    @Test(arguments: [[5, 0, 0, 1, 0, 0, 0, 0, 0, 0], [5, 1]] as [[UInt8]])
    func whatFollowsTheLastReplyIsAnError(reply: [UInt8]) throws {
        var client = client()
        _ = client.connected()
        _ = try client.received([5, 0])
        _ = try? client.received(reply)
        let error = parentsError { () throws(ParentsError) in try client.received([0]) }
        #expect(error?.code == .malformedReply && client.state == .failed)
    }

    @Test(
        arguments: [
            ([4], .malformedReply), ([0x48], .malformedReply), ([5, 1], .malformedReply), ([5, 2], .malformedReply),
            ([5, 0xFF], .notAuthenticated), ([5, 0, 5], .malformedReply),
        ] as [([UInt8], ParentsError.Code)])
    func hostileMethodsAreErrors(reply: [UInt8], code: ParentsError.Code) {
        var client = client()
        _ = client.connected()
        let error = parentsError { () throws(ParentsError) in try client.received(reply) }
        #expect(error?.code == code)
        #expect(error?.detail.hasPrefix("the parent socks5h://tor.example:9050: ") == true)
        #expect(client.state == .failed)
    }

    @Test(
        arguments: [
            ([1, 1], .notAuthenticated), ([1, 0xFF], .notAuthenticated), ([0], .malformedReply),
            ([2, 0], .malformedReply),
            ([1, 0, 5], .malformedReply),
        ] as [([UInt8], ParentsError.Code)])
    func aRejectedCredentialIsAnErrorOfItsOwn(reply: [UInt8], code: ParentsError.Code) throws {
        var client = client(credential)
        _ = client.connected()
        _ = try client.received([5, 2])
        let error = parentsError { () throws(ParentsError) in try client.received(reply) }
        #expect(error?.code == code)
        #expect(error?.detail.contains("pw") == false)
    }

    @Test(
        arguments: [
            ([5, 1], .refused, "general failure"), ([5, 2], .refused, "rules"), ([5, 3], .refused, "network"),
            ([5, 4], .refused, "host is unreachable"), ([5, 5], .refused, "refused"),
            ([5, 6], .refused, "time to live"),
            ([5, 7], .refused, "CONNECT"), ([5, 8], .refused, "type of address"),
            ([5, 9], .refused, "unknown reply 9"),
            ([5, 255], .refused, "unknown reply 255"), ([4], .malformedReply, "version"),
            ([5, 0, 1], .malformedReply, "reserved"), ([5, 0, 0, 2], .malformedReply, "type of address"),
            ([5, 0, 0, 0], .malformedReply, "type of address"),
        ] as [([UInt8], ParentsError.Code, String)])
    func refusalsSayWhy(reply: [UInt8], code: ParentsError.Code, reason: String) throws {
        var client = client()
        _ = client.connected()
        _ = try client.received([5, 0])
        let error = parentsError { () throws(ParentsError) in try feed(&client, reply) }
        #expect(error?.code == code)
        #expect(error?.detail.contains(reason) == true, "\(error?.detail ?? "no error")")
    }

    @Test func bytesBeforeTheGreetingAndAnEarlyEndAreErrors() throws {
        var early = client()
        #expect(parentsError { () throws(ParentsError) in try early.received([5, 0]) }?.code == .malformedReply)
        var cut = client()
        _ = cut.connected()
        _ = try cut.received([5])
        #expect(cut.connectionEnded().code == .malformedReply)
        #expect(cut.state == .failed)
    }
}
