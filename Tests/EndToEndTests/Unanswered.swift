// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Checks the origin's log for unanswered challenges.
enum Unanswered {
    /// Expects that the origin received these requests with that query, and no credentials in them.
    static func expect(
        _ setting: BadOriginSetting, _ origin: BadOrigin, _ query: String, _ paths: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let logged = try setting.logged(origin, query, atLeast: paths.count)
        #expect(logged.map(\.path) == paths.map { "\($0)?\(query)" }, "\(logged)", sourceLocation: sourceLocation)
        for request in logged {
            #expect(
                [request.authorization, request.client, request.proxyAuthorization] == ["", "", ""], "\(request)",
                sourceLocation: sourceLocation)
        }
    }
}
