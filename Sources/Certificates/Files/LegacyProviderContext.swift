// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// OpenSSL's legacy algorithms (RC2, single DES) in a library context of their own, so that nothing else in the process
/// can reach them. Only identity files are read with it. What is made in it goes when it goes: copy what is to stay.
final class LegacyProviderContext {
    let context: OpaquePointer
    private let providers: [OpaquePointer]

    /// Nil where OpenSSL's legacy provider is not installed.
    init?() {
        guard let context = OSSL_LIB_CTX_new() else { return nil }
        let providers = ["default", "legacy"].compactMap { (name: String) in OSSL_PROVIDER_load(context, name) }
        guard providers.count == 2 else {
            for provider in providers { OSSL_PROVIDER_unload(provider) }
            OSSL_LIB_CTX_free(context)
            return nil
        }
        self.context = context
        self.providers = providers
    }

    deinit {
        for provider in providers { OSSL_PROVIDER_unload(provider) }
        OSSL_LIB_CTX_free(context)
    }
}
