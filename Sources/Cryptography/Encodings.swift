// SPDX-License-Identifier: Apache-2.0

/// Base64 with padding (RFC 4648 §4). Decoding is strict: white space, missing or misplaced padding, and non-zero
/// padding bits are errors.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// `bytes` as text.
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        let length = encodedLength(of: bytes.count)
        return String(unsafeUninitializedCapacity: length) { output in
            encode(bytes) { output.initializeElement(at: $0, to: $1) }
            return length
        }
    }

    /// `bytes` as text that is secret, too: no copy of it is made in ordinary memory.
    package static func encodeSecret(_ bytes: some Collection<UInt8>) -> Secret {
        // The compiler specialises this for the memory of an array, but not for the collections of other modules.
        let secret = bytes.withContiguousStorageIfAvailable { bytes in
            Secret(count: encodedLength(of: bytes.count)) { output in encode(bytes) { output[$0] = $1 } }
        }
        return secret ?? Secret(count: encodedLength(of: bytes.count)) { output in encode(bytes) { output[$0] = $1 } }
    }

    private static func encodedLength(of count: Int) -> Int { (count + 2) / 3 * 4 }

    /// Passes each character with its offset to `write`.
    private static func encode(_ bytes: some Collection<UInt8>, _ write: (Int, UInt8) -> Void) {
        var offset = 0
        var accumulator: UInt32 = 0
        var pending = 0
        func put(_ character: UInt8) {
            write(offset, character)
            offset += 1
        }
        for byte in bytes {
            accumulator = accumulator << 8 | UInt32(byte)
            pending += 1
            guard pending == 3 else { continue }
            for shift in stride(from: UInt32(18), through: 0, by: -6) { put(alphabet[Int(accumulator >> shift) & 63]) }
            accumulator = 0
            pending = 0
        }
        guard pending > 0 else { return }
        accumulator <<= pending == 1 ? 16 : 8
        put(alphabet[Int(accumulator >> 18) & 63])
        put(alphabet[Int(accumulator >> 12) & 63])
        put(pending == 1 ? 0x3D : alphabet[Int(accumulator >> 6) & 63])
        put(0x3D)
    }

    /// `bytes` as text in lines of 64 characters, each with a line feed (RFC 7468 §2).
    package static func encodeLines(_ bytes: some Collection<UInt8>) -> String {
        let text = Array(encode(bytes).utf8)
        var lines: [UInt8] = []
        lines.reserveCapacity(text.count + text.count / 64 + 1)
        for start in stride(from: 0, to: text.count, by: 64) {
            lines += text[start..<min(start + 64, text.count)]
            lines.append(0x0A)
        }
        return String(decoding: lines, as: UTF8.self)
    }

    /// The decoded bytes of `text`, or nil if it is not base64.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count % 4 == 0 else { return nil }
        let padding = characters.suffix(2).reversed().prefix { $0 == 0x3D }.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(characters.count / 4 * 3)
        return decode(characters.dropLast(padding)) { bytes.append($0) } ? bytes : nil
    }

    /// Passes each byte to `append`. Returns whether all characters belong to the alphabet and the last one has no
    /// further bits.
    fileprivate static func decode(_ characters: some Sequence<UInt8>, _ append: (UInt8) -> Void) -> Bool {
        var accumulator: UInt32 = 0
        var bits: UInt32 = 0
        for character in characters {
            let value = values[Int(character)]
            guard value != 0xFF else { return false }
            accumulator = (accumulator << 6 | UInt32(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                append(UInt8(truncatingIfNeeded: accumulator >> bits))
            }
        }
        return accumulator & ((1 << bits) - 1) == 0
    }
}

/// Base64 with the URL-safe alphabet and without padding (RFC 7515 §2). Decoding is as strict as ``Base64``'s.
package enum Base64URL {
    /// `bytes` as text.
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: Base64.encode(bytes).utf8.prefix { $0 != 0x3D }.map(character), as: UTF8.self)
    }

    /// `bytes` as text that is secret, too: no copy of it is made in ordinary memory.
    package static func encodeSecret(_ bytes: some Collection<UInt8>) -> Secret {
        Base64.encodeSecret(bytes).withBytes { text in
            let text = text.prefix { $0 != 0x3D }
            return Secret(count: text.count) { output in
                for (index, byte) in text.enumerated() { output[index] = character(byte) }
            }
        }
    }

    /// The decoded bytes of `text`, or nil if it is not base64url without padding.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var standard: [UInt8] = []
        standard.reserveCapacity(text.utf8.count + 2)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: standard.append(byte)
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        return Base64.decode(String(decoding: standard, as: UTF8.self))
    }

    /// The same for text that is secret: no copy of it, or of its bytes, is made in ordinary memory.
    package static func decodeSecret(_ text: some Collection<UInt8>) -> Secret? {
        guard text.count % 4 != 1 else { return nil }
        var isValid = true
        let secret = Secret(count: text.count * 3 / 4) { output in
            var count = 0
            let characters = text.lazy.map { byte -> UInt8 in
                switch byte {
                case UInt8(ascii: "-"): UInt8(ascii: "+")
                case UInt8(ascii: "_"): UInt8(ascii: "/")
                // Not of the alphabet.
                case UInt8(ascii: "+"), UInt8(ascii: "/"): 0
                default: byte
                }
            }
            isValid = Base64.decode(characters) { byte in
                output[count] = byte
                count += 1
            }
        }
        return isValid ? secret : nil
    }

    private static func character(_ standard: UInt8) -> UInt8 {
        switch standard {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: standard
        }
    }
}

/// Hexadecimal, two digits per byte.
package enum Hex {
    private static let alphabet = Array("0123456789abcdef".utf8)

    /// The lower-case digits of `bytes`, in ASCII.
    package static func digits(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes(digits) }

    /// The same, in a single allocation.
    package static func digits(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 2 * bytes.count) { output, count in
            count = 2 * bytes.count
            let output = UnsafeMutableRawBufferPointer(output)
            output.copyMemory(from: bytes)
            expand(UnsafeMutableRawBufferPointer(rebasing: output[..<count]))
        }
    }

    /// Replaces the bytes in the first half of `output` with their lower-case digits, which fill all of it.
    static func expand(_ output: UnsafeMutableRawBufferPointer) {
        // From the end, so that no byte is overwritten before it is read.
        var offset = output.count / 2
        while offset % 4 != 0 {
            offset -= 1
            let pair = UInt16(truncatingIfNeeded: digits(of: UInt32(output[offset])))
            output.storeBytes(of: pair.littleEndian, toByteOffset: 2 * offset, as: UInt16.self)
        }
        while offset > 0 {
            offset -= 4
            let bytes = UInt32(littleEndian: output.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            output.storeBytes(of: digits(of: bytes).littleEndian, toByteOffset: 2 * offset, as: UInt64.self)
        }
    }

    /// The eight digits of `number`, in ASCII: an array's bytes, without an array.
    package static func withDigits<Result>(
        of number: UInt32, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        withUnsafeBytes(of: digits(of: number.byteSwapped).littleEndian, body)
    }

    /// The eight digits of four bytes, the lowest byte's in the two lowest, in the order in which they are written.
    /// Without a branch, which would be mispredicted for every other digit.
    private static func digits(of bytes: UInt32) -> UInt64 {
        var apart = UInt64(bytes)
        apart = (apart | apart << 16) & 0x0000_FFFF_0000_FFFF
        apart = (apart | apart << 8) & 0x00FF_00FF_00FF_00FF
        let values = (apart >> 4 | apart << 8) & 0x0F0F_0F0F_0F0F_0F0F
        let areLetters = (values &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        let letterOffset = UInt64(UInt8(ascii: "a") - UInt8(ascii: "0") - 10)
        return values &+ 0x3030_3030_3030_3030 &+ areLetters &* letterOffset
    }

    /// `bytes` in lower-case digits, with `separator` between bytes.
    package static func encode(_ bytes: some Sequence<UInt8>, separator: String = "") -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.underestimatedCount * (2 + separator.utf8.count))
        for byte in bytes {
            if !text.isEmpty { text.append(contentsOf: separator.utf8) }
            text.append(alphabet[Int(byte >> 4)])
            text.append(alphabet[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of hexadecimal digits in either case; nil for any other character and for an odd number of digits.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            guard let digit = value(of: character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return high == nil ? bytes : nil
    }

    /// The value of one ASCII digit in either case; nil for any other character.
    package static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
