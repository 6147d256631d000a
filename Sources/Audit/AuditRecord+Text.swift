// SPDX-License-Identifier: Apache-2.0

extension AuditRecord {
    /// One line for a person, without a line break: time, number, result, status, request, credential and client.
    package var text: String {
        var columns = [time.local, Self.padded("#\(number)", 6)]
        switch kind {
        case .use(let use):
            columns += [
                Self.padded(use.isDryRun ? "dry run" : use.result.rawValue, 10),
                Self.padded(use.status == 0 ? "-" : String(use.status), 3), "\(use.method) \(use.site)",
                "\(use.scheme), \(use.credential)" + (use.generation.map { " (version \($0))" } ?? ""),
            ]
            let client = [
                use.program, use.pid.map { "process \($0)" }, use.uid.map { "user \($0)" }, use.cgroup,
            ].compactMap(\.self)
            if !client.isEmpty { columns.append(client.joined(separator: ", ")) }
        case .begin: columns.append("the audit begins")
        case .continue: columns.append("continues the file before, after its record \(number - 1)")
        case .start: columns.append("a server opened the file")
        case .interrupted(let cut):
            columns.append(
                "a server opened the file, which was not closed"
                    + (cut.map { "; \($0.bytes) bytes before it are unfinished" } ?? ""))
        case .lost(let count): columns.append("\(count) \(count == 1 ? "use was" : "uses were") not recorded")
        case .checkpoint(let key, _): columns.append("signed by \(key.prefix(16))")
        case .end(let key, _): columns.append("closed, and signed by \(key.prefix(16))")
        }
        return columns.joined(separator: "  ")
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
