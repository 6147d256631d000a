// SPDX-License-Identifier: Apache-2.0

/// Punycode with the parameters of RFC 3492 §5, for one label without its `xn--`.
enum Punycode {
    private static let base = 36
    private static let tMin = 1
    private static let tMax = 26
    private static let initialBias = 72
    private static let initialN = 0x80

    /// Lower-case ASCII; nil for more characters than a label can have, which bounds the work.
    static func encode(_ scalars: [Unicode.Scalar]) -> String? {
        guard scalars.count <= HostName.maximumLabelBytes else { return nil }
        var output = scalars.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basicCount = output.count
        if basicCount > 0 { output.append(UInt8(ascii: "-")) }

        var next = initialN
        var delta = 0
        var bias = initialBias
        var handled = basicCount
        while handled < scalars.count {
            let larger = scalars.map { Int($0.value) }.filter { $0 >= next }
            guard let smallest = larger.min() else { return nil }
            delta += (smallest - next) * (handled + 1)
            next = smallest
            for scalar in scalars {
                if Int(scalar.value) < next { delta += 1 }
                guard Int(scalar.value) == next else { continue }
                appendVariableLength(delta, bias, to: &output)
                bias = adapted(delta, points: handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            next += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Decodes lower-case ASCII; nil if it is not Punycode or longer than a label. The result has at least one
    /// non-ASCII character.
    static func decode(_ input: String) -> [Unicode.Scalar]? {
        let bytes = Array(input.utf8)
        guard bytes.count <= HostName.maximumLabelBytes else { return nil }
        var output: [Unicode.Scalar] = []
        var rest = bytes[...]
        if let delimiter = bytes.lastIndex(of: UInt8(ascii: "-")) {
            guard delimiter > 0 else { return nil }
            output = bytes[..<delimiter].map { Unicode.Scalar($0) }
            rest = bytes[(delimiter + 1)...]
        }
        guard !rest.isEmpty else { return nil }

        var next = initialN
        var position = 0
        var bias = initialBias
        while !rest.isEmpty {
            guard let delta = readVariableLength(&rest, bias) else { return nil }
            position += delta
            let count = output.count + 1
            bias = adapted(delta, points: count, isFirst: output.allSatisfy(\.isASCII))
            next += position / count
            position %= count
            guard let value = UInt32(exactly: next), let scalar = Unicode.Scalar(value) else { return nil }
            output.insert(scalar, at: position)
            position += 1
        }
        return output
    }

    // MARK: Variable-length integers (RFC 3492 §3.3) and the bias (§3.4)

    private static func appendVariableLength(_ delta: Int, _ bias: Int, to output: inout [UInt8]) {
        var quotient = delta
        var weight = base
        while true {
            let threshold = threshold(weight, bias)
            guard quotient >= threshold else { break }
            output.append(digit(threshold + (quotient - threshold) % (base - threshold)))
            quotient = (quotient - threshold) / (base - threshold)
            weight += base
        }
        output.append(digit(quotient))
    }

    /// Nil for numbers above 2^31, which no valid label needs.
    private static func readVariableLength(_ rest: inout ArraySlice<UInt8>, _ bias: Int) -> Int? {
        var value = 0
        var factor = 1
        var weight = base
        while let byte = rest.popFirst() {
            guard let digit = digitValue(byte) else { return nil }
            value += digit * factor
            guard value <= Int(Int32.max) else { return nil }
            let threshold = threshold(weight, bias)
            if digit < threshold { return value }
            factor *= base - threshold
            guard factor <= Int(Int32.max) else { return nil }
            weight += base
        }
        return nil
    }

    private static func threshold(_ weight: Int, _ bias: Int) -> Int {
        min(max(weight - bias, tMin), tMax)
    }

    private static func adapted(_ delta: Int, points: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / points
        var weight = 0
        while delta > (base - tMin) * tMax / 2 {
            delta /= base - tMin
            weight += base
        }
        return weight + (base - tMin + 1) * delta / (delta + 38)
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: value < 26 ? value + 0x61 : value - 26 + 0x30)
    }

    private static func digitValue(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte) - 0x61
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte) - 0x30 + 26
        default: nil
        }
    }
}
