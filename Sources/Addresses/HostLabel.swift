// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// One label of a name, in the form for comparison and in the form for people.
struct HostLabel {
    /// Lower-case ASCII, at most 63 bytes.
    let text: String
    /// The U-label of an international label, else the ASCII text.
    let unicode: [Unicode.Scalar]

    /// `bytes` are UTF-8 whose ASCII characters are letters, digits, `-` and `_` only.
    init(_ bytes: some Collection<UInt8>, _ use: HostName.Use) throws(HostNameError) {
        let isASCII = bytes.allSatisfy { $0 < 0x80 }
        let input = String(decoding: bytes, as: UTF8.self)
        var lowered = String.UnicodeScalarView()
        for byte in bytes where isASCII {
            let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            lowered.append(Unicode.Scalar(isUpper ? byte | 0x20 : byte))
        }
        if isASCII, lowered.count > HostName.maximumLabelBytes {
            throw Self.tooLong(input)
        }

        if !isASCII {
            let scalars = try InternationalLabel.mapped(input)
            guard let encoded = Punycode.encode(scalars) else { throw Self.tooLong(input) }
            text = "xn--" + encoded
            unicode = scalars
            guard text.utf8.count <= HostName.maximumLabelBytes else { throw Self.tooLong(input) }
        } else if use == .forwarded {
            text = String(lowered)
            unicode = Array(lowered)
        } else if lowered.starts(with: "xn--".unicodeScalars) {
            text = String(lowered)
            unicode = try Self.decoded(text)
        } else {
            text = String(lowered)
            unicode = Array(lowered)
            try Self.checkListed(text)
        }
    }

    /// The U-label of `text`, an A-label. Throws if encoding the U-label does not give `text` again (RFC 5891 §5.4).
    private static func decoded(_ text: String) throws(HostNameError) -> [Unicode.Scalar] {
        guard let scalars = Punycode.decode(String(text.dropFirst(4))) else {
            throw HostNameError(
                .international, "the label \(PrintableText.quoteASCII(text)) is not Punycode (RFC 3492)")
        }
        guard Punycode.encode(scalars).map({ "xn--" + $0 }) == text,
            try InternationalLabel.mapped(String(String.UnicodeScalarView(scalars))) == scalars
        else {
            throw HostNameError(
                .international,
                "the label \(PrintableText.quoteASCII(text)) is not the canonical encoding of its text (RFC 5891)")
        }
        return scalars
    }

    private static func checkListed(_ text: String) throws(HostNameError) {
        if text.hasPrefix("-") || text.hasSuffix("-") || text.dropFirst(2).hasPrefix("--") {
            throw HostNameError(
                .misplacedHyphen,
                "the label \(PrintableText.quoteASCII(text)) has a hyphen at a forbidden position (RFC 5891)")
        }
    }

    private static func tooLong(_ input: String) -> HostNameError {
        HostNameError(
            .labelTooLong,
            "the label \(PrintableText.quoteASCII(input)) is longer than \(HostName.maximumLabelBytes) bytes")
    }
}
