// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@_spi(_Unicode) import Swift

/// Checks labels against IDNA 2008 (RFC 5891 §4.2, RFC 5892), with the character properties of Swift's Unicode tables,
/// after the mapping that users expect: lower case and NFC (RFC 5895 §2).
///
/// Stricter than the RFCs in two places: a letter whose lower case is ASCII (the Kelvin sign) is an error, and a
/// zero-width non-joiner is permitted after a virama only, because the tables do not contain the joining types (RFC
/// 5892 appendix A.1, second rule).
enum InternationalLabel {
    /// The U-label of `input`, which has at least one non-ASCII character and whose ASCII characters are letters,
    /// digits, `-` and `_` only.
    static func mapped(_ input: String) throws(HostNameError) -> [Unicode.Scalar] {
        var lowered = String.UnicodeScalarView()
        for scalar in input.unicodeScalars {
            if !scalar.properties.changesWhenNFKCCaseFolded {
                lowered.append(scalar)
                continue
            }
            let lower = scalar.properties.lowercaseMapping.unicodeScalars
            guard scalar.isASCII || !lower.contains(where: \.isASCII) else { throw refused(scalar, in: input) }
            lowered.append(contentsOf: lower)
        }
        // The standard library's NFC. Its only public interface is in Foundation, which this module does not import.
        let scalars = Array(String(lowered)._nfc)
        try check(scalars, input)
        return scalars
    }

    private static func check(_ scalars: [Unicode.Scalar], _ input: String) throws(HostNameError) {
        for (index, scalar) in scalars.enumerated() where !isPermitted(scalar, at: index, in: scalars) {
            throw refused(scalar, in: input)
        }
        if let first = scalars.first, isMark(first) {
            throw HostNameError(
                .international, "the label \(PrintableText.quoteASCII(input)) begins with a combining mark")
        }
        let hyphensInside = scalars.count >= 4 && scalars[2] == "-" && scalars[3] == "-"
        if scalars.first == "-" || scalars.last == "-" || hyphensInside {
            throw HostNameError(
                .misplacedHyphen,
                "the label \(PrintableText.quoteASCII(input)) has a hyphen at a forbidden position (RFC 5891)")
        }
    }

    private static func refused(_ scalar: Unicode.Scalar, in input: String) -> HostNameError {
        HostNameError(
            .international,
            "the character \(PrintableText.quoteASCII(String(scalar))) is not allowed in the label \(PrintableText.quoteASCII(input)) (RFC 5892)"
        )
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

    // MARK: The derived property of RFC 5892 §3

    enum DerivedProperty: Equatable {
        case valid
        /// Valid if the contextual rule of appendix A is satisfied.
        case contextual
        case disallowed
    }

    /// The rules in the order of the section.
    static func derivedProperty(of scalar: Unicode.Scalar) -> DerivedProperty {
        switch scalar.value {
        case 0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007: return .valid
        case 0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x660...0x669, 0x6F0...0x6F9, 0x200C, 0x200D: return .contextual
        case 0x640, 0x7FA, 0x302E, 0x302F, 0x3031...0x3035, 0x303B: return .disallowed
        case 0x2D, 0x30...0x39, 0x61...0x7A: return .valid
        case 0x20D0...0x20FF, 0x1D100...0x1D1FF, 0x1D200...0x1D24F: return .disallowed
        case 0x1100...0x11FF, 0xA960...0xA97F, 0xD7B0...0xD7FF: return .disallowed
        default: break
        }
        let properties = scalar.properties
        if properties.changesWhenNFKCCaseFolded || properties.isDefaultIgnorableCodePoint { return .disallowed }
        switch properties.generalCategory {
        case .lowercaseLetter, .uppercaseLetter, .otherLetter, .modifierLetter, .decimalNumber, .nonspacingMark,
            .spacingMark:
            return .valid
        default: return .disallowed
        }
    }

    private static func isPermitted(_ scalar: Unicode.Scalar, at index: Int, in label: [Unicode.Scalar]) -> Bool {
        switch derivedProperty(of: scalar) {
        case .valid: true
        case .contextual: isInContext(scalar, at: index, in: label)
        case .disallowed: false
        }
    }

    /// The contextual rules of RFC 5892 appendix A.
    private static func isInContext(_ scalar: Unicode.Scalar, at index: Int, in label: [Unicode.Scalar]) -> Bool {
        let before = index > 0 ? label[index - 1] : nil
        let after = index + 1 < label.count ? label[index + 1] : nil
        switch scalar.value {
        case 0x200C, 0x200D: return before?.properties.canonicalCombiningClass == .virama
        case 0xB7: return before == "l" && after == "l"
        case 0x375: return after.map(isGreek) ?? false
        case 0x5F3, 0x5F4: return before.map { (0x591...0x5F4).contains($0.value) } ?? false
        case 0x30FB: return label.contains { $0 != "\u{30FB}" && isJapanese($0) }
        case 0x660...0x669: return !label.contains { (0x6F0...0x6F9).contains($0.value) }
        default: return !label.contains { (0x660...0x669).contains($0.value) }
        }
    }

    private static func isGreek(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x370...0x373, 0x375...0x377, 0x37B...0x3E1, 0x3F0...0x3FF, 0x1F00...0x1FFF, 0x1D26...0x1D2A: true
        default: false
        }
    }

    private static func isJapanese(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x3005, 0x3007, 0x3041...0x3096, 0x309D...0x309F, 0x30A1...0x30FA, 0x30FD...0x30FF, 0x31F0...0x31FF,
            0x1AFF0...0x1B16F:
            true
        default: scalar.properties.isIdeographic && isHan(scalar.value)
        }
    }

    private static func isHan(_ value: UInt32) -> Bool {
        switch value {
        case 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFD: true
        default: false
        }
    }
}
