// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// A use of a credential as an event of OCSF's class Authentication (3002), version 1.4.0: a logon at a site.
///
/// What the schema has no attribute for is in `unmapped`. Of the chain, only the record's hash is in it: the audit
/// itself is the proof.
package enum OCSFAuthentication {
    private static let schemaVersion = "1.4.0"

    /// Nil for a record that is not of a use, and for a dry run.
    package static func event(for record: AuditRecord) -> JSONObject? {
        guard case .use(let use) = record.kind, !use.isDryRun else { return nil }
        var event = JSONObject()
        event.add("category_uid", 3)
        event.add("class_uid", 3002)
        event.add("activity_id", 1)
        event.add("type_uid", 300_201)
        event.add("time", UInt64(max(0, use.time.totalMilliseconds)))
        event.add("severity_id", use.result == .rejected ? 2 : 1)
        event.add("metadata", metadata(record))
        addStatus(of: use, to: &event)
        let (id, name) = protocolName(use.scheme)
        event.add("auth_protocol_id", id)
        event.add("auth_protocol", name)
        var user = JSONObject()
        user.add("name", use.credential)
        event.add("user", user)
        event.add("dst_endpoint", endpoint(use.site))
        var service = JSONObject()
        service.add("name", use.site)
        event.add("service", service)
        if let actor = actor(use) { event.add("actor", actor) }
        var request = JSONObject()
        request.add("http_method", use.method)
        event.add("http_request", request)
        if use.status > 0 {
            var response = JSONObject()
            response.add("code", UInt64(use.status))
            event.add("http_response", response)
        }
        event.add("unmapped", unmapped(record, use))
        return event
    }

    private static func metadata(_ record: AuditRecord) -> JSONObject {
        var product = JSONObject()
        product.add("name", "Countersign")
        product.add("vendor_name", "Countersign")
        var metadata = JSONObject()
        metadata.add("version", schemaVersion)
        metadata.add("product", product)
        metadata.add("uid", record.hash)
        metadata.add("sequence", record.number)
        return metadata
    }

    /// `status_id` and `status`. 99 is another status, which the text names.
    private static func addStatus(of use: CredentialUse, to event: inout JSONObject) {
        switch use.result {
        case .accepted:
            event.add("status_id", 1)
            event.add("status", "Success")
        case .rejected:
            event.add("status_id", 2)
            event.add("status", "Failure")
        case .sent, .unanswered, .unsent:
            event.add("status_id", 99)
            event.add("status", use.result.rawValue)
        }
    }

    /// `auth_protocol_id` and its caption. Negotiate may be Kerberos or NTLM, so that it is neither.
    private static func protocolName(_ scheme: String) -> (UInt64, String) {
        switch scheme {
        case "ntlm": (1, "NTLM")
        case "digest": (3, "Digest")
        case "bearer": (6, "OAUTH 2.0")
        case "basic": (11, "Basic Authentication")
        default: (99, scheme)
        }
    }

    /// `scheme://host:port`.
    private static func endpoint(_ site: String) -> JSONObject {
        let authority = site.firstRange(of: "://").map { site[$0.upperBound...] } ?? site[...]
        var endpoint = JSONObject()
        guard let colon = authority.lastIndex(of: ":"), let port = UInt16(authority[authority.index(after: colon)...])
        else {
            endpoint.add("hostname", String(authority))
            return endpoint
        }
        endpoint.add("hostname", String(authority[..<colon]))
        endpoint.add("port", UInt64(port))
        return endpoint
    }

    private static func actor(_ use: CredentialUse) -> JSONObject? {
        guard use.pid != nil || use.program != nil || use.uid != nil else { return nil }
        var actor = JSONObject()
        if use.pid != nil || use.program != nil {
            var process = JSONObject()
            if let pid = use.pid { process.add("pid", UInt64(max(0, pid))) }
            if let program = use.program {
                process.add(
                    "name",
                    String(program[(program.lastIndex(of: "/").map(program.index(after:)) ?? program.startIndex)...]))
                process.add("path", program)
            }
            actor.add("process", process)
        }
        if let uid = use.uid {
            var user = JSONObject()
            user.add("uid", String(uid))
            actor.add("user", user)
        }
        return actor
    }

    private static func unmapped(_ record: AuditRecord, _ use: CredentialUse) -> JSONObject {
        var unmapped = JSONObject()
        unmapped.add("scheme", use.scheme)
        unmapped.add("result", use.result.rawValue)
        if let generation = use.generation { unmapped.add("generation", generation) }
        if let cgroup = use.cgroup { unmapped.add("cgroup", cgroup) }
        return unmapped
    }
}
