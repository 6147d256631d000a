// SPDX-License-Identifier: Apache-2.0

/// The options of a message's Connection field.
struct ConnectionField: Hashable, Sendable {
    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var upgrades = false
    private(set) var optionCount = 0
    /// An option names a field that ``ConnectionOptions`` removes.
    private(set) var removesFields = false

    /// Reads one line of the field, whose value is at `range`.
    mutating func read(_ bytes: RawSpan, at range: Range<Int>) {
        // The most common value, handled without parsing a list.
        if bytes.isName("keep-alive", at: range) {
            optionCount += 1
            keepsAlive = true
            return
        }
        bytes.forEachElement(of: range) { option in
            optionCount += 1
            if bytes.isName("close", at: option) {
                closes = true
            } else if bytes.isName("keep-alive", at: option) {
                keepsAlive = true
            } else if bytes.isName("upgrade", at: option) {
                upgrades = true
            } else if FieldName(in: bytes, at: option).isOther {
                removesFields = true
            }
        }
    }
}
