"""Methods: one module per idea, named after the idea, with no knowledge of files or screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.registry import Registry, late_imports

if TYPE_CHECKING:
    from fieldmark.methods.base import Fitted, Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "frequent": ("fieldmark.methods.frequent:Frequent", "the training frequencies, whatever the photo shows"),
        "centroid": ("fieldmark.methods.centroid:Centroid", "the nearest class mean by cosine"),
        "knn": ("fieldmark.methods.knn:NearestNeighbors", "a vote of the nearest training photos"),
        "prototypes": (
            "fieldmark.methods.prototypes:Prototypes",
            "class means that borrow from genus and family; good with few photos",
        ),
        "clustering": (
            "fieldmark.methods.clustering:Clustering",
            "photos of one individual together, by average linkage and a curve fitted to pairs",
        ),
        "align": (
            "fieldmark.methods.align:Align",
            "prototypes of sheets moved to where field photos lie; for releases of two domains",
        ),
        "two-stage": ("fieldmark.methods.adapted:TwoStage", "a network learns sheets, then field photos"),
        "fsada": (
            "fieldmark.methods.adapted:FewShotAdversary",
            "a network against a discriminator of pairs of sheets and field photos",
        ),
        "triplet": (
            "fieldmark.methods.adapted:DomainTriplets",
            "a network that brings sheets and field photos of a species together",
        ),
        "em": (
            "fieldmark.methods.em:Transductive",
            "prototypes updated on test photos; sees the whole test set",
        ),
        "ridge": ("fieldmark.methods.ridge:Ridge", "least squares, penalty from val; good with few photos"),
        "lda": (
            "fieldmark.methods.lda:Discriminant",
            "Gaussian labels, one shrunk covariance; good with few photos",
        ),
        "birdnet": (
            "fieldmark.methods.birdnet:BirdNetClassifier",
            "BirdNET V2.4 as it is, for recordings (extra birdnet, not for commercial use)",
        ),
        "cnn": (
            "fieldmark.methods.cnn:SpectrogramNetwork",
            "a network of timm on mel spectrograms, or on patches of maps around places",
        ),
        "finetune": ("fieldmark.methods.finetune:Finetune", "fine-tunes the whole network, by a TOML recipe"),
        "encoder": (
            "fieldmark.methods.encoder:Encoder",
            "a network whose features serve for related species as well (`fieldmark encoder train`)",
        ),
        "norm-online": (
            "fieldmark.methods.norm_online:NormOnline",
            "finetune, and in time order batch normalization follows the photos of earlier days",
        ),
        "published": ("fieldmark.methods.published:Published", "a published network, as it is"),
        "linear": ("fieldmark.methods.linear:Linear", "multinomial logistic regression, regularizer from val"),
        "supervised": (
            "fieldmark.methods.semi.heads:Supervised",
            "labeled photos only: the baseline for methods that use unlabeled photos",
        ),
        "oracle": (
            "fieldmark.methods.semi.heads:Oracle",
            "reads the hidden labels of in-class unlabeled photos: an upper bound, not a method",
        ),
        "pseudo-label": (
            "fieldmark.methods.semi.pseudo_labels:PseudoLabel",
            "pseudo-labels for unlabeled photos that the head is sure of; thresholds, alignment, filters as options",
        ),
        "pseudo-label-coarse": (
            "fieldmark.methods.semi.coarse:CoarsePseudoLabel",
            "pseudo-labels within the stated kingdom and phylum",
        ),
        "fixmatch": (
            "fieldmark.methods.semi.pseudo_labels:FixMatch",
            "consistency under weak and strong augmentation of features; of photos with finetune",
        ),
        "self-training": (
            "fieldmark.methods.semi.heads:SelfTraining",
            "a student learns a teacher's predictions on unlabeled photos",
        ),
        "label-propagation": (
            "fieldmark.methods.semi.heads:LabelPropagation",
            "labels spread over a graph of nearest neighbors",
        ),
        "prototypes-unlabeled": (
            "fieldmark.methods.semi.prototypes:UnlabeledPrototypes",
            "prototypes moved by unlabeled photos that labels reach over a graph of neighbors",
        ),
        "prototypes-coarse": (
            "fieldmark.methods.semi.prototypes:CoarsePrototypes",
            "the same within the stated kingdom and phylum",
        ),
        "coarse": (
            "fieldmark.methods.semi.coarse:Coarse",
            "a hierarchical loss: an unlabeled photo has one of the labels of its kingdom and phylum",
        ),
        "fixmatch-network": (
            "fieldmark.methods.semi.networks:TwoViews",
            "fine-tunes on labels and on consistency between two views of unlabeled photos",
        ),
        "ccssl": (
            "fieldmark.methods.semi.networks:ClassAware",
            "the same, plus class-aware contrast where the network is sure",
        ),
        "coarse-network": (
            "fieldmark.methods.semi.networks:CoarseNetwork",
            "fine-tunes on labels, and on kingdom and phylum of unlabeled photos",
        ),
        "distillation": (
            "fieldmark.methods.semi.networks:DistilledNetwork",
            "self-training of the whole network: a student learns a teacher's predictions on unlabeled photos",
        ),
        "moco": (
            "fieldmark.methods.semi.moco:Moco",
            "momentum contrast of all photos without labels, then fine-tuning on labels",
        ),
        "finetune-oracle": (
            "fieldmark.methods.semi.networks:FinetuneOracle",
            "finetune with the hidden labels of in-class unlabeled photos: an upper bound, not a method",
        ),
        "tabular": (
            "fieldmark.methods.tabular:Tabular",
            "metadata without the photo: boosted trees, or a softmax network (extra tabular)",
        ),
        "fusion": ("fieldmark.methods.fusion:Fusion", "a classifier for each modality, weights from val"),
        "joint": (
            "fieldmark.methods.joint:Joint",
            "one small network on all modalities, each dropped at random as it learns",
        ),
        "detect": (
            "fieldmark.methods.detect:Detect",
            "finds the organism, cuts it out, and classifies the crop",
        ),
        "country-prior": (
            "fieldmark.methods.country_prior:CountryWeighted",
            "a calibrated classifier, weighed by what lives in the country",
        ),
        "openset": ("fieldmark.methods.openset:OpenSet", "a classifier with a novelty score, chosen on val"),
        "ellipse": ("fieldmark.methods.ellipse:CenterEllipse", "the same ellipse in every photo, for masks"),
        "grabcut": (
            "fieldmark.methods.grabcut:GrabCut",
            "colors of the middle against the edge, for masks",
        ),
        "saliency": ("fieldmark.methods.salient_masks:SalientMasks", "what stands out in a photo, for masks"),
        "sam": ("fieldmark.methods.sam:Sam", "MobileSAM or SAM 2, shown where to look, for masks"),
        "cutout": (
            "fieldmark.methods.cutout:Cutout",
            "saliency, sam and the masks of train, for masks; the one to start with",
        ),
        "unet": ("fieldmark.methods.unet:UNet", "a U-Net on a network of timm, for masks (extra masks)"),
        "neighbors": ("fieldmark.methods.places.neighbors:NeighborsInSpace", "what was found nearby, for places"),
        "random-forest": (
            "fieldmark.methods.places.forest:RandomForest",
            "forests with sparse leaves, one for all species or down-sampled for each, for places (extra places)",
        ),
        "boosting": (
            "fieldmark.methods.places.rerank:Boosting",
            "boosted trees put candidates in order, for places (extra places)",
        ),
        "maxent": (
            "fieldmark.methods.places.maxent:Maxent",
            "maximum entropy on hinge features, species by species, for places (extra maxent)",
        ),
        "down-weighted-boosting": (
            "fieldmark.methods.places.boosted_trees:DownWeightedBoosting",
            "boosted trees for each species against a down-weighted background, for places (extra places)",
        ),
        "spline-logistic": (
            "fieldmark.methods.places.splines:SplineLogistic",
            "an additive model of splines for each species, for places",
        ),
        "sinr": (
            "fieldmark.methods.places.sinr:Sinr",
            "coordinates and covariates through one network, absences assumed, for places",
        ),
        "deepmaxent": (
            "fieldmark.methods.places.sinr:DeepMaxent",
            "the same network by maximum entropy, for places",
        ),
        "place-ensemble": (
            "fieldmark.methods.places.ensemble:PlaceEnsemble",
            "the mean of several methods for places, brought to one scale over the background",
        ),
        "ensemble": (
            "fieldmark.methods.ensemble:Ensemble",
            "the mean of any methods: of probabilities, logits or ranks, weights equal or by folds",
        ),
        "min-cost": ("fieldmark.methods.min_cost:LeastCost", "a calibrated classifier that answers what costs least"),
    },
    group="fieldmark.methods",
)

# Under which question `fieldmark list methods` shows a method, and which only chain others; the rest comes last.
GROUPS = {
    "labels of photos and recordings": (
        *("frequent", "centroid", "knn", "prototypes", "ridge", "lda", "linear", "em"),
        *("finetune", "encoder", "norm-online", "published", "ensemble"),
    ),
    "recordings": ("birdnet", "cnn"),
    "photos and metadata": ("tabular", "fusion", "joint"),
    "few labels, many photos": (
        *("supervised", "pseudo-label", "pseudo-label-coarse", "fixmatch", "self-training", "label-propagation"),
        *("prototypes-unlabeled", "prototypes-coarse"),
        *("coarse", "fixmatch-network", "ccssl", "coarse-network", "distillation", "moco", "oracle", "finetune-oracle"),
    ),
    "two domains": ("align", "two-stage", "fsada", "triplet"),
    "individuals": ("clustering",),
    "masks": ("cutout", "saliency", "sam", "unet", "grabcut", "ellipse"),
    "places": (
        *("neighbors", "random-forest", "boosting", "maxent", "down-weighted-boosting", "spline-logistic"),
        *("sinr", "deepmaxent", "place-ensemble"),
    ),
}
CHAINS = ("detect", "country-prior", "openset", "min-cost")


def methods_by_question() -> dict[str, list[str]]:
    """The names of all methods by the question they answer, chains last; each once."""
    grouped = {name for names in GROUPS.values() for name in names} | set(CHAINS)
    shown = {question: [name for name in names if name in METHODS] for question, names in GROUPS.items()}
    others = [name for name in METHODS if name not in grouped]
    shown |= {"other": others} if others else {}
    return shown | {"chains: a classifier with something before or after it": list(CHAINS)}


__getattr__ = late_imports(__name__, "fieldmark.methods.base:Fitted", "fieldmark.methods.base:Method")
__all__ = ["CHAINS", "GROUPS", "METHODS", "Fitted", "Method", "methods_by_question"]
