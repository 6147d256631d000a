// SPDX-License-Identifier: Apache-2.0

extension RecordFormat {
    /// Enrolments of identities, and what belongs to them.
    static let enrollments: [RecordFormat] = [
        named(.enrollment, { $0.enrollments }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            parts.enrollments[name] = try body.enrollment(named: name)
        },
        named(.pendingEnrollment, { $0.pendingEnrollments }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            parts.pendingEnrollments[name] = try body.pendingEnrollment(named: name)
        },
        named(.enrollmentServer, { $0.enrollments.mapValues(\.serverAnchors).filter { $0.value != .same } }) {
            $0.append($2, of: $1)
        } read: { name, body, parts throws(VaultError) in
            let anchors = try body.serverAnchors()
            guard parts.enrollments[name] != nil else { throw RecordReader.malformed("a server without an enrolment") }
            parts.enrollments[name]?.serverAnchors = anchors
        },
        named(
            .pendingServer,
            { $0.pendingEnrollments.compactMapValues { $0.plan?.serverAnchors }.filter { $0.value != .same } }
        ) {
            $0.append($2, of: $1)
        } read: { name, body, parts throws(VaultError) in
            let anchors = try body.serverAnchors()
            guard parts.pendingEnrollments[name]?.plan != nil else {
                throw RecordReader.malformed("a server without an enrolment")
            }
            parts.pendingEnrollments[name]?.plan?.serverAnchors = anchors
        },
        named(.pendingToken, { $0.pendingEnrollments.compactMapValues(\.token) }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            let key = try body.tokenKey(named: name)
            guard parts.pendingEnrollments[name]?.privateKey == PendingEnrollment.keyInToken else {
                throw RecordReader.malformed("a key in a token without a request")
            }
            parts.pendingEnrollments[name]?.set(token: key)
        },
        named(.enrollmentOwner, { $0.enrollments.compactMapValues(\.owner) }) {
            $0.append($2, of: $1)
        } read: { name, body, parts throws(VaultError) in
            let owner = try body.owner()
            guard parts.enrollments[name] != nil else { throw RecordReader.malformed("an owner without an enrolment") }
            parts.enrollments[name]?.owner = owner
        },
        named(.pendingOwner, { $0.pendingEnrollments.compactMapValues { $0.plan?.owner } }) {
            $0.append($2, of: $1)
        } read: { name, body, parts throws(VaultError) in
            let owner = try body.owner()
            guard parts.pendingEnrollments[name]?.plan != nil else {
                throw RecordReader.malformed("an owner without an enrolment")
            }
            parts.pendingEnrollments[name]?.plan?.owner = owner
        },
    ]
}
