// SPDX-License-Identifier: Apache-2.0

extension HomeManager {
    /// Whether the processes of this home answer challenges at all, as `countersign pause` and `countersign resume`
    /// switch it. A ``ChallengeController`` has a switch of its own besides.
    public func isIntegratedAuthenticationEnabled() async throws -> Bool {
        try await blocking { [home] in !home.isPaused }
    }

    /// Switches answering on or off for all processes of the home, now and after a restart. While it is off, no site
    /// counts as listed, and every challenge goes back to the client.
    public func setIntegratedAuthenticationEnabled(_ isEnabled: Bool) async throws {
        try await blocking { [home] in _ = try home.setPaused(!isEnabled) }
    }
}
