// SPDX-License-Identifier: Apache-2.0

/// The Bidi rule (RFC 5893 §2), for labels that IDNA 2008 permits. For these, the bidirectional class follows from the
/// Unicode block and general category, because right-to-left scripts have blocks of their own.
enum BidirectionalRule {
    private enum Class {
        case left
        case right
        case europeanNumber
        case arabicNumber
        case neutral
        case mark
    }

    /// Whether the rule applies: it applies to every label of a name if one of them contains right-to-left characters.
    static func applies(to labels: [[Unicode.Scalar]]) -> Bool {
        labels.contains { $0.contains { [.right, .arabicNumber].contains(classOf($0)) } }
    }

    static func isSatisfied(by label: [Unicode.Scalar]) -> Bool {
        let classes = label.map(classOf)
        guard let first = classes.first, let end = classes.last(where: { $0 != .mark }) else { return false }
        switch first {
        case .right:
            let mixesNumbers = classes.contains(.europeanNumber) && classes.contains(.arabicNumber)
            return !classes.contains(.left) && !mixesNumbers && end != .neutral
        case .left:
            return !classes.contains(.right) && !classes.contains(.arabicNumber) && end != .neutral
        default:
            return false
        }
    }

    private static func classOf(_ scalar: Unicode.Scalar) -> Class {
        switch scalar.value {
        case 0x30...0x39, 0x6F0...0x6F9: return .europeanNumber
        case 0x660...0x669, 0x10D30...0x10D39, 0x10D40...0x10D49: return .arabicNumber
        case 0x2D, 0xB7, 0x2B9...0x2BA, 0x2C2...0x2CF, 0x2EC, 0x375, 0x2E2F, 0x30FB, 0xA67F, 0xA717...0xA71F, 0xA788:
            return .neutral
        case 0x200C, 0x200D: return .neutral
        default: break
        }
        if scalar.properties.generalCategory == .nonspacingMark { return .mark }
        switch scalar.value {
        case 0x590...0x8FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x10800...0x10FFF, 0x1E800...0x1EFFF: return .right
        default: return .left
        }
    }
}
