// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignParents

/// An element of another product's list of hosts that are reached directly, in the grammar of `--no-proxy`.
enum NoProxyTranslation {
    enum Result: Equatable {
        case taken(String)
        /// The reason.
        case left(String)
    }

    /// The elements of a list with commas or blanks.
    static func elements(_ list: String) -> [String] {
        list.split { ", \t".contains($0) }.map(String.init)
    }

    static func translate(_ element: String) -> Result {
        if element == "*" { return .taken("*") }
        if element.lowercased() == "<local>" || element == "<-loopback>" {
            return element == "<-loopback>"
                ? .taken(element) : .left("there is no element for all names without a dot; list them")
        }
        if let network = network(element) { return checked(network) }
        if element.hasPrefix("*."), !element.dropFirst(2).contains(where: { "*?".contains($0) }) {
            return checked(String(element.dropFirst(2)))
        }
        if element.contains(where: { "*?".contains($0) }) {
            return .left("a wildcard is possible only for the front labels of a name or the last numbers of an address")
        }
        if element.contains("-"), element.allSatisfy({ $0.isNumber || ".-".contains($0) }) {
            return .left("a range of addresses; write networks, such as 192.168.0.0/24")
        }
        return checked(element)
    }

    /// `10.*` and `127.0.0.*` as networks.
    private static func network(_ element: String) -> String? {
        var labels = element.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.last == "*", (2...4).contains(labels.count) else { return nil }
        while labels.last == "*" { labels.removeLast() }
        guard !labels.isEmpty, labels.allSatisfy({ UInt8($0) != nil }) else { return nil }
        let zeros = Array(repeating: "0", count: 4 - labels.count)
        return "\((labels.map(String.init) + zeros).joined(separator: "."))/\(labels.count * 8)"
    }

    private static func checked(_ element: String) -> Result {
        do throws(ParentsError) {
            _ = try NoProxyList(flag: element)
            return .taken(element)
        } catch {
            return .left("neither a domain nor an address")
        }
    }
}
