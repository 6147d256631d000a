// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The hosts that are reached directly, in curl's grammar: elements separated by commas or blanks, or `*` alone.
///
/// `example.com` and `.example.com` match the domain and all names below it; an address matches itself; `10.0.0.0/8`
/// for a network. In addition to curl's grammar, a port may follow, and an IPv6 address may be in brackets. As in
/// Chromium's list, `<-loopback>` means that requests to this machine are no exception.
package struct NoProxyList: Hashable, Sendable {
    package enum Hosts: Hashable, Sendable {
        case all
        /// The domain and all names below it.
        case domain(String)
        /// The network's address, and how many of its bits count.
        case network([UInt8], bits: Int)
    }

    private struct Element: Hashable {
        let text: String
        let hosts: Hosts
        /// Nil for every port.
        let port: UInt16?
    }

    private let elements: [Element]
    /// Whether parents get requests to this machine, too.
    package let sendsLoopback: Bool
    /// Elements of the environment's list that match nothing.
    package let ignored: [String]

    /// What the elements match, in order; a port of nil is every port.
    package var exceptions: [(hosts: Hosts, port: UInt16?)] { elements.map { ($0.hosts, $0.port) } }

    /// The value of `--no-proxy`. An element that would match nothing is an error.
    package init(flag text: String) throws(ParentsError) {
        var elements: [Element] = []
        let (words, sendsLoopback) = Self.words(of: text)
        for word in words {
            do throws(Fault) {
                elements.append(try Self.element(word, isAlone: text == "*"))
            } catch {
                throw ParentsError(
                    .malformedNoProxy, "--no-proxy: \(error.reason): \(PrintableText.quote(word))",
                    hint: error.hint ?? "write domains, addresses or networks: corp.example,10.0.0.0/8")
            }
        }
        self.elements = elements
        self.sendsLoopback = sendsLoopback
        ignored = []
    }

    /// The value of `no_proxy` or `NO_PROXY`, which other programs read, too: elements that curl ignores are ignored.
    package init(environment text: String) {
        var elements: [Element] = []
        var ignored: [String] = []
        let (words, sendsLoopback) = Self.words(of: text)
        for word in words {
            do throws(Fault) {
                elements.append(try Self.element(word, isAlone: text == "*"))
            } catch {
                ignored.append(String(word))
            }
        }
        self.elements = elements
        self.sendsLoopback = sendsLoopback
        self.ignored = ignored
    }

    /// The element that contains the host, as written; nil without one.
    package func element(containing host: HostName, port: UInt16) -> String? {
        let address = host.addressBytes
        return elements.first { element in
            (element.port == nil || element.port == port) && Self.contains(element.hosts, host, address)
        }?.text
    }

    private static func contains(_ hosts: Hosts, _ host: HostName, _ address: [UInt8]) -> Bool {
        switch hosts {
        case .all:
            return true
        case .domain(let domain):
            return host.kind == .name && (host.text == domain || host.text.hasSuffix("." + domain))
        case .network(let network, let bits):
            guard network.count == address.count else { return false }
            let whole = bits / 8
            guard network[..<whole] == address[..<whole] else { return false }
            let rest = bits % 8
            return rest == 0 || (network[whole] ^ address[whole]) >> UInt8(8 - rest) == 0
        }
    }

    // MARK: Parsing

    private struct Fault: Error {
        let reason: String
        let hint: String?

        init(_ reason: String, hint: String? = nil) {
            self.reason = reason
            self.hint = hint
        }
    }

    private static func words(of text: String) -> (words: [Substring], sendsLoopback: Bool) {
        let all = text.split { $0 == "," || $0 == " " || $0 == "\t" }
        let words = all.filter { $0.lowercased() != "<-loopback>" }
        return (words, words.count < all.count)
    }

    private static func element(_ word: Substring, isAlone: Bool) throws(Fault) -> Element {
        if isAlone { return Element(text: "*", hosts: .all, port: nil) }
        guard word != "*" else { throw Fault("* must be the only element") }
        let (host, bits, port) = try split(word)
        let name = host.hasPrefix(".") ? host.dropFirst() : host
        guard !name.isEmpty else { throw Fault("there is no host") }
        let hint = name.hasPrefix("*.") ? "write \(name.dropFirst()) for a domain and the names below it" : nil
        guard let canonical = try? HostName(canonicalizing: name, for: .forwarded) else {
            throw Fault("neither a domain nor an address", hint: hint)
        }
        let address = canonical.addressBytes
        guard address.isEmpty else {
            guard name.startIndex == host.startIndex else { throw Fault("a dot stands before an address") }
            return Element(
                text: String(word), hosts: .network(address, bits: try width(bits, address.count * 8)), port: port)
        }
        guard bits == nil else { throw Fault("only an address has a prefix length") }
        return Element(text: String(word), hosts: .domain(canonical.text), port: port)
    }

    /// curl reads a prefix length of 0 as all bits.
    private static func width(_ digits: Substring?, _ all: Int) throws(Fault) -> Int {
        guard let digits else { return all }
        guard digits.utf8.count <= 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let bits = Int(digits),
            bits <= all
        else { throw Fault("the prefix length is not a number from 1 to \(all)") }
        return bits == 0 ? all : bits
    }

    private static func split(
        _ word: Substring
    ) throws(Fault) -> (host: Substring, bits: Substring?, port: UInt16?) {
        let colons = word.utf8.count { $0 == UInt8(ascii: ":") }
        if word.hasPrefix("[") {
            guard let end = word.firstIndex(of: "]") else { throw Fault("the bracket is not closed") }
            let rest = word[word.index(after: end)...]
            let host = word[word.index(after: word.startIndex)..<end]
            if rest.isEmpty { return (host, nil, nil) }
            if rest.hasPrefix("/") { return (host, rest.dropFirst(), nil) }
            return (host, nil, try port(rest))
        }
        if let slash = word.firstIndex(of: "/") { return (word[..<slash], word[word.index(after: slash)...], nil) }
        guard colons == 1, let colon = word.firstIndex(of: ":") else { return (word, nil, nil) }
        return (word[..<colon], nil, try port(word[colon...]))
    }

    private static func port(_ text: Substring) throws(Fault) -> UInt16 {
        guard text.hasPrefix(":"), text.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(text.dropFirst()), port > 0
        else { throw Fault("not a port from 1 to 65535") }
        return port
    }
}
