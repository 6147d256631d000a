// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignHTTP1
import CountersignParents

private func proxy(_ kind: ParentProxy.Kind) -> ParentProxy { ParentProxy(kind, host, 1080) }

private let host: HostName = {
    guard let host = try? HostName(canonicalizing: "a.example") else { fatalError("a host is refused") }
    return host
}()

/// A result that is read has few hops, and is read again from its own description.
@Sendable func pacResult(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    guard let result = try? ScriptResult(parsing: text, from: .wpad) else { return }
    precondition((1...ScriptResult.maximumHops).contains(result.hops.count))
    let words = result.hops.map { hop in
        switch hop {
        case .direct: return "DIRECT"
        case .parent(let parent):
            let word = ["http": "PROXY", "https": "HTTPS", "socks5h": "SOCKS5"][parent.kind.rawValue] ?? ""
            return "\(word) \(parent.authority)"
        }
    }
    precondition((try? ScriptResult(parsing: words.joined(separator: ";"), from: .wpad))?.hops == result.hops)
}

/// The reply of an open connection is the same byte by byte; further bytes belong to the tunnel.
@Sendable func socksReply(_ input: [UInt8]) {
    let octets = socks(input, step: 1)
    precondition(
        octets.dropLast().allSatisfy { action in
            if case .established = action { false } else { true }
        })
    if case .established(let rest)? = octets.last { precondition(rest.isEmpty) }
    // In pieces that end with the replies, as a parent sends them.
    if input.count > 2, case .established(let rest)? = socks(input, step: input.count, first: 2).last {
        precondition(rest.count <= input.count - 8)
        precondition(octets.contains { $0 == .established([]) })
    }
}

private func socks(_ bytes: [UInt8], step: Int, first: Int? = nil) -> [SOCKS5Client.Action] {
    var client = SOCKS5Client(parent: proxy(.socks5h), to: host, port: 443)
    var actions = [client.connected()]
    var start = 0
    while start < bytes.count, client.state != .established {
        let count = start == 0 ? first ?? step : step
        let piece = bytes[start..<min(bytes.count, start + count)]
        start += count
        guard let action = try? client.received(piece) else { return actions }
        actions.append(action)
    }
    return actions
}

/// The outcome of a response does not depend on how it is split, except for bytes after its end.
@Sendable func connectResponse(_ input: [UInt8]) {
    let octets = connect(input, step: 1)
    let whole = connect(input, step: max(input.count, 1))
    switch (octets, whole) {
    case (.opened(let first, let rest)?, .opened(let second, _)?): precondition(first == second && rest.isEmpty)
    case (.responded(let first)?, .responded(let second)?):
        precondition(first.status == second.status && first.body == second.body)
        precondition(first.body.count <= ConnectClient.maximumBodyBytes)
    default: precondition((octets == nil) == (whole == nil), "the outcome depends on how the input is split")
    }
}

private func connect(_ bytes: [UInt8], step: Int) -> ConnectClient.Action? {
    var client = ConnectClient(parent: proxy(.http), to: host, port: 443, via: "1.1 a")
    client.requestSent()
    var start = 0
    while start < bytes.count {
        guard let action = try? client.received(bytes[start..<min(bytes.count, start + step)]) else { return nil }
        if action != .needMore { return action }
        start += step
    }
    return try? client.connectionEnded()
}

/// A list means the same however strictly it is read, if it is valid.
@Sendable func noProxy(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    let lenient = NoProxyList(environment: text)
    guard let strict = try? NoProxyList(flag: text) else { return }
    precondition(lenient == strict)
    _ = strict.element(containing: host, port: 443)
}
