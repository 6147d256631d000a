// SPDX-License-Identifier: Apache-2.0

extension StringProtocol {
    /// Without those of `marks` that it begins and ends with.
    func trimming(_ marks: String) -> String {
        let rest = drop { marks.contains($0) }
        guard let last = rest.lastIndex(where: { !marks.contains($0) }) else { return "" }
        return String(rest[...last])
    }
}
