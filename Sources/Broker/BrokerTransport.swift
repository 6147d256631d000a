// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Carries calls to the broker.
package protocol BrokerTransport: Sendable {
    /// The reply's text. `correlation` is a UUID that the broker writes into its log. Ends with `cancelled` when the
    /// task is cancelled. Does not block the caller's thread.
    func reply(to call: BrokerCall, correlation: String) async throws(BrokerError) -> [UInt8]
}

/// The broker, as its clients use it.
package struct Broker: Sendable {
    private let transport: any BrokerTransport
    private let correlation: String

    /// `random` is 16 random bytes, which distinguish this client's calls from others in the broker's log.
    package init(_ transport: any BrokerTransport, random: [UInt8]) {
        self.transport = transport
        correlation = Self.identifier(random)
    }

    /// All accounts, for a caller that may block, and waits for at most `limit`.
    package static func accountsBlocking(
        on bus: SessionBus, for app: BrokerClientApp, within limit: Duration, random: [UInt8]
    ) throws(BrokerError) -> [BrokerAccount] {
        let call = BrokerCall(.getAccounts, BrokerCall.accounts(for: app).request, limit: limit)
        return try BrokerReply(
            try bus.replyBlocking(to: call, correlation: identifier(random)), to: call.method
        ).accounts()
    }

    /// All accounts.
    package func accounts(for app: BrokerClientApp) async throws(BrokerError) -> [BrokerAccount] {
        try await reply(to: .accounts(for: app)).accounts()
    }

    /// Tokens without a person. With `renewing`, others than that access token.
    package func token(
        for app: BrokerClientApp, of account: BrokerAccount, renewing: Secret? = nil
    ) async throws(BrokerError) -> BrokerToken {
        try await reply(to: .token(for: app, of: account, renewing: renewing)).token()
    }

    /// Tokens after the person has signed in, in a window of the broker. Waits as long as that takes. If the task is
    /// cancelled, the window stays: the request of `cancelInteractiveFlow` is not known, and another program has seen
    /// the broker end after that call.
    package func interactiveToken(
        for app: BrokerClientApp, of account: BrokerAccount?, prompt: String? = nil
    ) async throws(BrokerError) -> BrokerToken {
        try await reply(to: .interactiveToken(for: app, of: account, prompt: prompt)).token()
    }

    /// The header for a navigation request to `url`.
    package func cookie(for url: String, of account: BrokerAccount) async throws(BrokerError) -> BrokerCookie {
        try await reply(to: .cookie(for: url, of: account)).cookie()
    }

    package func version(of program: String) async throws(BrokerError) -> String {
        try await reply(to: .version(of: program)).version()
    }

    private func reply(to call: BrokerCall) async throws(BrokerError) -> BrokerReply {
        var bytes = try await transport.reply(to: call, correlation: correlation)
        defer { bytes.wipe() }
        return try BrokerReply(bytes, to: call.method)
    }

    /// A UUID of version 4 (RFC 9562 §5.4) from 16 random bytes.
    static func identifier(_ random: [UInt8]) -> String {
        precondition(random.count == 16, "a UUID has 16 bytes")
        var bytes = random
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array(Hex.encode(bytes))
        let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
        return groups.joined(separator: "-")
    }
}
