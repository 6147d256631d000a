// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignAddresses
import CountersignChallenges
import CountersignHome
import CountersignSitePolicy

/// The options of `enroll` for what a site requires of an access token besides scopes.
struct StepUpOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Sign in at one of these levels (RFC 9470), separated by spaces.", valueName: "values"))
    var acrValues: String?

    @Option(
        help: ArgumentHelp("Sign in again unless that was at most so long ago.", valueName: "seconds"))
    var maxAge: Int64?

    @Option(
        help: ArgumentHelp(
            "Ask for these claims, as a site's challenge has them: JSON, or that in base64.", valueName: "claims"))
    var claims: String?

    @Option(
        help: ArgumentHelp(
            "Use the new access token for this https site alone; others keep the present one.", valueName: "site"))
    var site: String?

    func validate() throws {
        if let acrValues, StepUp.acrValues(acrValues) == nil {
            throw ValidationError("--acr-values must be names without quotation marks, separated by spaces")
        }
        if let maxAge, !(0...StepUp.longestAge).contains(maxAge) {
            throw ValidationError("--max-age must be 0 to \(StepUp.longestAge) seconds")
        }
        if let claims, StepUp.claims(claims) == nil {
            throw ValidationError(
                "--claims must be a JSON object of at most \(StepUp.claimsBytes) bytes, or that in base64")
        }
    }

    func stepUp(scopes: [String]) -> StepUp {
        StepUp(
            scopes: scopes, claims: claims.flatMap(StepUp.claims),
            acrValues: acrValues.flatMap(StepUp.acrValues) ?? [], maxAge: maxAge)
    }

    /// The demand of the site that `--site` names, which must be one that gets the token of this sign-in; nil without
    /// the option.
    func demand(on signIn: ListedSignIn?, name: String?, scopes: [String], list: () throws -> SiteList) throws
        -> SiteDemand?
    {
        guard let site else { return nil }
        guard let signIn else {
            throw CountersignError(
                .configuration, "--site is for a sign-in that is there: its token stays the one of other sites",
                hint: "sign in first, and then `countersign enroll NAME --site \(site)`")
        }
        guard name == nil || name == signIn.name else {
            throw CountersignError(
                .configuration, "--site is for the sign-in \(signIn.name.debugDescription), and --name names another",
                hint: "leave --name out")
        }
        guard !signIn.subject.isEmpty else {
            throw CountersignError(
                .configuration,
                "the provider does not say who has signed in as \(signIn.name.debugDescription), so another account "
                    + "could take the place of yours unnoticed",
                hint: "leave --site out, or ask for a profile with the scope openid")
        }
        let origin: Origin
        do throws(HostNameError) {
            origin = try Origin(url: site)
        } catch {
            throw CountersignError(.configuration, "--site \(site) is not the URL of a site: \(error.detail)")
        }
        guard origin.scheme == .https else {
            throw CountersignError(
                .configuration, "--site \(site) is not https, and no access token is sent without it")
        }
        guard try list().rules(for: origin).contains(where: { $0.credential == signIn.name }) else {
            throw CountersignError(
                .configuration, "\(origin.shortText) does not get the token of \(signIn.name.debugDescription)",
                hint: "list it with `countersign sites add \(origin.shortText) answer=bearer credential=\(signIn.name)`"
            )
        }
        return SiteDemand(stepUp(scopes: scopes.filter { !signIn.scopes.contains($0) }), of: origin)
    }
}
