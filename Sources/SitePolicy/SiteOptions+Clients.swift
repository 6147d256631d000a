// SPDX-License-Identifier: Apache-2.0

extension SiteOptions {
    /// The clients of `for=`. `column` is that of `text` in its line.
    static func clients(in text: String, at column: Int) throws(Fault) -> ClientRule {
        do throws(ClientRule.Fault) {
            return try ClientRule(parsing: text)
        } catch {
            throw Fault(column: column + error.offset, message: error.message, hint: error.hint)
        }
    }

    /// The fault of `for=` together with the other options, once all words are read.
    func clientsFault() -> Fault? {
        guard let clientsColumn = column(of: "for"), !intercepts else { return nil }
        return Fault(
            column: clientsColumn, message: "for= has no effect with intercept=no",
            hint: "remove one of the two options")
    }
}
