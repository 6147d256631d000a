// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignEnrollment

extension ProviderClient {
    /// Sends a request to a compliance service. Redirects are not followed.
    package func send(_ request: ComplianceRequest) async -> ComplianceRemediation.Response {
        var exchange = exchange(request.url, body: request.body)
        exchange.responseBytes = ComplianceReply.maximumBytes
        exchange.fields += [
            ("Accept", Secret(utf8: "application/json")), ("Content-Type", Secret(utf8: "application/json")),
            ("Accept-Language", Secret(utf8: request.languages)),
        ]
        if let authorization = request.authorization { exchange.fields.append(("Authorization", authorization)) }
        do throws(EnrollmentError) {
            let response = try await run(exchange)
            let type = response.field("content-type").map { value in
                String(value.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }).lowercased()
            }
            return .reply(
                status: response.status, mediaType: type, body: response.body.withBytes { Array($0) })
        } catch {
            // A reply that is too long or cut shows that the service is reachable.
            let isTransient = error.isTransient && error.code != .malformedResponse
            return .failure(error.detail, isTransient: isTransient)
        }
    }
}
