// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

// SOCKS 5 towards a parent (RFC 1928), with a user name and password (RFC 1929) or without authentication. Does not
// implement GSS-API (RFC 1961), BIND and UDP ASSOCIATE.
//
//     us                                   parent
//     05 n METHODS             →
//                              ←           05 METHOD
//     01 USER PASSWORD         →                          only if METHOD is 2
//                              ←           01 00
//     05 01 00 ADDRESS PORT    →
//                              ←           05 00 00 ADDRESS PORT
//
// The parent only replies. Bytes that it sends unrequested are an error: they would be read as a later reply. Bytes
// after the last reply belong to the tunnel.

/// Opens one connection through a SOCKS 5 parent.
package struct SOCKS5Client: Sendable {
    package enum State: Hashable, Sendable, CaseIterable {
        case idle
        case waitingForMethod
        case waitingForAuthentication
        case waitingForReply
        case established
        case failed
    }

    package enum Action: Equatable, Sendable {
        case needMore
        case send([UInt8])
        /// The user name and password.
        case sendSecret(Secret)
        /// The connection is open. These bytes are already from its other end.
        case established([UInt8])
    }

    /// At most 255 bytes each, and not empty (RFC 1929 §2).
    package struct Credential: Sendable {
        let user: Secret
        let password: Secret

        /// Nil if the user name or the password cannot be sent.
        package init?(user: Secret, password: Secret) {
            guard (1...255).contains(user.count), (1...255).contains(password.count) else { return nil }
            self.user = user
            self.password = password
        }
    }

    package private(set) var state = State.idle
    private let parent: ParentProxy
    private let host: HostName
    private let port: UInt16
    private let credential: Credential?
    private var buffer: [UInt8] = []

    /// `host` is an address if the parent is not to resolve names.
    package init(parent: ParentProxy, to host: HostName, port: UInt16, credential: Credential? = nil) {
        precondition(parent.kind.isSOCKS, "the parent does not speak SOCKS")
        precondition(!parent.kind.resolvesHere || host.kind != .name, "the name has to be resolved first")
        self.parent = parent
        self.host = host
        self.port = port
        self.credential = credential
    }

    /// The first message.
    package mutating func connected() -> Action {
        precondition(state == .idle, "the connection has begun already")
        state = .waitingForMethod
        return .send(credential == nil ? [5, 1, Method.none] : [5, 2, Method.none, Method.password])
    }

    /// Bytes have arrived from the parent. Unrequested bytes are an error; bytes after `established` belong to the
    /// tunnel.
    package mutating func received(_ bytes: some Collection<UInt8>) throws(ParentsError) -> Action {
        buffer += bytes
        do throws(ParentsError) {
            switch state {
            case .waitingForMethod: return try readMethod()
            case .waitingForAuthentication: return try readAuthentication()
            case .waitingForReply: return try readReply()
            case .idle: throw fault(.malformedReply, "it sent something before it was asked")
            case .established, .failed: throw fault(.malformedReply, "it sent more than its last reply")
            }
        } catch {
            state = .failed
            throw error
        }
    }

    /// The parent closed the connection. The error that it is while the dialogue lasts.
    package mutating func connectionEnded() -> ParentsError {
        state = .failed
        return fault(.malformedReply, "it closed the connection before its reply was complete")
    }

    // MARK: Replies

    private enum Method {
        static let none: UInt8 = 0
        static let password: UInt8 = 2
        static let unacceptable: UInt8 = 0xFF
    }

    private mutating func readMethod() throws(ParentsError) -> Action {
        try require(5, at: 0, "a reply of another version than SOCKS 5")
        guard let reply = try whole(2) else { return .needMore }
        switch reply[1] {
        case Method.none:
            return sendRequest()
        case Method.password where credential != nil:
            guard let credential else { return .needMore }
            state = .waitingForAuthentication
            return .sendSecret(Self.message(credential))
        case Method.unacceptable:
            throw fault(
                .notAuthenticated,
                credential == nil ? "it requires authentication" : "it does not accept a user name and password")
        default:
            throw fault(.malformedReply, "it chose an authentication method that was not offered")
        }
    }

    private mutating func readAuthentication() throws(ParentsError) -> Action {
        // RFC 1929 says 1; some servers repeat the version of SOCKS (Dante before 1.4).
        guard let first = buffer.first else { return .needMore }
        guard first == 1 || first == 5 else { throw fault(.malformedReply, "not a reply to a user name and password") }
        guard let reply = try whole(2) else { return .needMore }
        guard reply[1] == 0 else { throw fault(.notAuthenticated, "it rejects the user name and password") }
        return sendRequest()
    }

    private mutating func readReply() throws(ParentsError) -> Action {
        try require(5, at: 0, "a reply of another version than SOCKS 5")
        // A failure may end after its code.
        if buffer.count >= 2, buffer[1] != 0 { throw refusal(buffer[1]) }
        try require(0, at: 2, "a reply whose reserved byte is not 0")
        guard buffer.count >= 5 else {
            if buffer.count == 4 { _ = try addressBytes(buffer[3], 0) }
            return .needMore
        }
        let length = 4 + (try addressBytes(buffer[3], buffer[4])) + 2
        guard buffer.count >= length else { return .needMore }
        state = .established
        defer { buffer = [] }
        return .established(Array(buffer[length...]))
    }

    /// The length of the address in a reply, which is not used (RFC 1928 §6).
    private func addressBytes(_ type: UInt8, _ first: UInt8) throws(ParentsError) -> Int {
        switch type {
        case 1: 4
        case 3: 1 + Int(first)
        case 4: 16
        default: throw fault(.malformedReply, "a reply with an unknown type of address")
        }
    }

    /// The whole buffer, once it has `count` bytes. More is an error, because the parent was not asked again yet.
    private mutating func whole(_ count: Int) throws(ParentsError) -> [UInt8]? {
        guard buffer.count >= count else { return nil }
        guard buffer.count == count else { throw fault(.malformedReply, "it sent more than one reply at once") }
        defer { buffer = [] }
        return buffer
    }

    private func require(_ byte: UInt8, at index: Int, _ otherwise: String) throws(ParentsError) {
        guard index < buffer.count, buffer[index] != byte else { return }
        throw fault(.malformedReply, otherwise)
    }

    private func refusal(_ code: UInt8) -> ParentsError {
        let reasons = [
            "general failure", "its rules do not permit the connection", "the network is unreachable",
            "the host is unreachable", "the connection is refused", "the time to live has expired",
            "it does not support CONNECT", "it does not support this type of address",
        ]
        let reason = reasons.indices.contains(Int(code) - 1) ? reasons[Int(code) - 1] : "unknown reply \(code)"
        return fault(.refused, "no connection to \(host.text):\(port): \(reason)")
    }

    private func fault(_ code: ParentsError.Code, _ reason: String) -> ParentsError {
        ParentsError(code, "the parent \(parent): \(reason)")
    }

    // MARK: Messages

    private mutating func sendRequest() -> Action {
        state = .waitingForReply
        let address: [UInt8] =
            switch host.kind {
            case .name: [3, UInt8(host.text.utf8.count)] + host.text.utf8
            case .ipv4: [1] + host.addressBytes
            case .ipv6: [4] + host.addressBytes
            }
        return .send([5, 1, 0] + address + [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)])
    }

    private static func message(_ credential: Credential) -> Secret {
        let (user, password) = (credential.user, credential.password)
        return Secret(count: 3 + user.count + password.count) { output in
            output[0] = 1
            var position = 1
            for part in [user, password] {
                output[position] = UInt8(part.count)
                part.withBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: output[(position + 1)...]).copyMemory(from: bytes)
                }
                position += 1 + part.count
            }
        }
    }
}
