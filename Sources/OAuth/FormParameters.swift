// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Parameters of a request, in order.
struct FormParameters: Sendable, Equatable {
    enum Value: Sendable, Equatable {
        case text(String)
        case secret(Secret)
    }

    private(set) var pairs: [(name: String, value: Value)] = []

    static func == (left: Self, right: Self) -> Bool { left.pairs.elementsEqual(right.pairs, by: ==) }

    mutating func append(_ name: String, _ value: String) { pairs.append((name, .text(value))) }

    mutating func append(_ name: String, _ value: Secret) { pairs.append((name, .secret(value))) }

    /// Does nothing for nil.
    mutating func append(_ name: String, ifPresent value: String?) {
        if let value { append(name, value) }
    }

    /// Adds the parameter unless there is one of this name.
    mutating func set(_ name: String, _ value: String) {
        if !pairs.contains(where: { $0.name == name }) { append(name, value) }
    }

    var secrets: [Secret] {
        pairs.compactMap { if case .secret(let secret) = $0.value { secret } else { nil } }
    }

    /// The body. No copy of a secret is made in ordinary memory.
    var encoded: Secret {
        var count = 0
        write { _ in count += 1 }
        return Secret(count: count) { output in
            var position = 0
            write {
                output[position] = $0
                position += 1
            }
        }
    }

    /// As text, for a URL. Must not contain secrets that a URL may not have.
    var text: String {
        var text: [UInt8] = []
        write { text.append($0) }
        return String(decoding: text, as: UTF8.self)
    }

    private func write(_ put: (UInt8) -> Void) {
        for (index, pair) in pairs.enumerated() {
            if index > 0 { put(UInt8(ascii: "&")) }
            FormEncoding.write(pair.name.utf8, put)
            put(UInt8(ascii: "="))
            switch pair.value {
            case .text(let text): FormEncoding.write(text.utf8, put)
            case .secret(let secret): secret.withBytes { FormEncoding.write($0, put) }
            }
        }
    }
}
