// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The fuzz targets. Each takes one input, and traps if an expected property does not hold.
private let targets: [String: @Sendable ([UInt8]) -> Void] = [
    "request-head": requestHead,
    "response-head": responseHead,
    "chunked-body": chunkedBody,
    "challenges": challenges,
    "ntlm-challenge": ntlmChallenge,
    "spnego-token": spnegoToken,
    "site-list": siteList,
    "host-name": hostName,
    "json": json,
    "provider-metadata": providerMetadata,
    "key-set": keySet,
    "id-token": idToken,
    "authorization-response": authorizationResponse,
    "token-response": tokenResponse,
    "device-authorization": deviceAuthorization,
    "token-revocation": tokenRevocation,
    "sign-in-profile": signInProfile,
    "protected-resource": protectedResource,
    "configuration-profile": configurationProfile,
    "special-url": specialURL, "compliance-reply": complianceReply,
    "authentication-info": authenticationInfo,
    "keytab": keytab,
    "ocsp-response": ocspResponse,
    "revocation-list": revocationList,
    "revocation-points": revocationPoints,
    "stored-status": storedStatus,
    "pac-result": pacResult, "socks-reply": socksReply, "connect-response": connectResponse, "no-proxy": noProxy,
]

private let chosen: @Sendable ([UInt8]) -> Void = {
    guard let name = getenv("COUNTERSIGN_FUZZ_TARGET").map({ String(cString: $0) }), let target = targets[name] else {
        fatalError("COUNTERSIGN_FUZZ_TARGET must be one of \(targets.keys.sorted().joined(separator: ", "))")
    }
    return target
}()

/// libFuzzer's entry point.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    chosen([UInt8](UnsafeBufferPointer(start: start, count: count)))
    return 0
}
