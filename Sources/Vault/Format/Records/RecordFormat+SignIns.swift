// SPDX-License-Identifier: Apache-2.0

extension RecordFormat {
    /// Sign-ins, and what they and their profiles bring.
    static let signIns: [RecordFormat] = [
        named(.signIn, { $0.signIns }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            guard parts.tokens[name] != nil else { throw RecordReader.malformed("a sign-in without a token") }
            parts.signIns[name] = try body.signIn(named: name)
        },
        RecordFormat(kind: .session) { contents, writer in
            for (_, session) in contents.sessions.sorted(by: { $0.key < $1.key }) {
                writer.record(.session) { $0.append(session) }
            }
        } read: { body, parts throws(VaultError) in
            let session = try body.session()
            // No group contains a space, and a space sorts before every character of a group.
            try parts.advance(to: (.session, "\(session.key.group) \(session.key.host)"))
            parts.sessions[session.key] = session
        },
        RecordFormat(kind: .profile) { contents, writer in
            for (_, record) in contents.profiles.sorted(by: { $0.key < $1.key }) {
                writer.record(.profile) { $0.append(record) }
            }
        } read: { body, parts throws(VaultError) in
            let record = try body.profile()
            try parts.advance(to: (.profile, record.identifier))
            parts.profiles[record.identifier] = record
        },
        named(.compliance, { $0.compliance }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            guard parts.signIns[name] != nil else { throw RecordReader.malformed("compliance without a sign-in") }
            parts.compliance[name] = try body.compliance(named: name)
        },
        named(.wipe, { $0.wipes }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            parts.wipes[name] = try body.wipe(named: name)
        },
        named(.tokenPermission, { $0.tokenPermissions }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            guard parts.signIns[name] != nil else { throw RecordReader.malformed("a permission without a sign-in") }
            parts.tokenPermissions[name] = TokenPermission(name: name, permitted: try body.time())
        },
    ]
}
